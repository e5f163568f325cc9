package proc

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// descendants returns the numbers of a process and of its descendants, without those that have
// ended. A descendant whose parent has ended is included if [Adopt] was called and it is still in
// the process's group.
func descendants(pid int) []int {
	list := []int{pid}
	for _, id := range children(os.Getpid()) {
		if id != pid && group(id) == pid {
			list = append(list, id)
		}
	}
	for i := 0; i < len(list); i++ {
		for _, id := range children(list[i]) {
			if !slices.Contains(list, id) {
				list = append(list, id)
			}
		}
	}
	return list
}

// children returns the numbers of a process's children.
func children(pid int) (list []int) {
	for _, thread := range threads(pid) {
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/children", pid, thread))
		if err != nil {
			continue // the thread has ended in the meantime
		}
		for _, word := range strings.Fields(string(text)) {
			if id, err := strconv.Atoi(word); err == nil {
				list = append(list, id)
			}
		}
	}
	return list
}

// Adopt makes this process permanently the parent of each descendant that loses its own parent, so
// that descendants can always be found.
func Adopt() error {
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("proc: become the parent of orphans: %w", err)
	}
	return nil
}

// Orphans returns the adopted processes that are in another session, as daemons are. Processes that
// this process starts are in its own session. Signals to a group do not reach orphans.
func Orphans() []int {
	own, err := unix.Getsid(0)
	if err != nil {
		return nil
	}
	return slices.DeleteFunc(children(os.Getpid()), func(pid int) bool {
		session, err := unix.Getsid(pid)
		return err != nil || session == own || reap(pid)
	})
}

// EndOrphan kills a process of [Orphans], and returns when it has ended. The error is a
// [StillRunningError] if it has not ended within [Patience].
func EndOrphan(pid int) error {
	_ = destroyOne(pid) // the process may just have ended
	for deadline := time.Now().Add(Patience); !reap(pid); time.Sleep(100 * time.Microsecond) {
		if time.Now().After(deadline) {
			return &StillRunningError{PID: pid}
		}
	}
	return nil
}

// reap reports whether an adopted process has ended, and waits for it in that case.
func reap(pid int) bool {
	for {
		id, err := unix.Wait4(pid, nil, unix.WNOHANG, nil)
		if !errors.Is(err, unix.EINTR) {
			return id != 0 // an error means that another goroutine has waited for it
		}
	}
}

// reapGroup waits for the adopted and killed members of a process's group. The process itself must
// have been waited for. reapGroup blocks until no member is left.
func reapGroup(pid int) {
	for {
		if _, err := unix.Wait4(-pid, nil, 0, nil); err != nil && !errors.Is(err, unix.EINTR) {
			return
		}
	}
}

// threads returns the numbers of a process's threads; the list is empty if the process has ended.
func threads(pid int) (list []int) {
	dir, err := os.Open(fmt.Sprintf("/proc/%d/task", pid))
	if err != nil {
		return nil
	}
	defer dir.Close()
	names, _ := dir.Readdirnames(-1) // empty if the process has ended
	for _, name := range names {
		if id, err := strconv.Atoi(name); err == nil {
			list = append(list, id)
		}
	}
	return list
}

// state returns the letter of a thread's state, or 0 if it has ended.
func state(pid, thread int) byte {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/stat", pid, thread))
	// The program's name, in parentheses, may contain any character.
	at := bytes.LastIndexByte(text, ')')
	if err != nil || at < 0 || at+2 >= len(text) {
		return 0
	}
	return text[at+2]
}

// all reports whether every thread of the processes has ended or is in one of the given states.
func all(pids []int, states string) bool {
	for _, pid := range pids {
		for _, thread := range threads(pid) {
			if s := state(pid, thread); s != 0 && !strings.ContainsRune(states, rune(s)) {
				return false
			}
		}
	}
	return true
}

// States of threads: ended, and ended or stopped.
const (
	dead    = "ZX"
	stopped = "Tt" + dead
)

// grouped returns the descendants of a process in its own group, which receive the group's signals.
func grouped(pid int, list []int) []int {
	return slices.DeleteFunc(slices.Clone(list), func(other int) bool { return other == pid || group(other) != pid })
}

// awaitAll blocks until all processes are in one of the given states, because a signal takes effect
// only after its call has returned. awaitAll returns false after Patience.
func awaitAll(list []int, states string) bool {
	for deadline := time.Now().Add(Patience); len(list) > 0 && !all(list, states); time.Sleep(100 * time.Microsecond) {
		if time.Now().After(deadline) {
			return false
		}
	}
	return true
}

// knowsFamilies returns nil: the system reports the parents of processes.
func knowsFamilies() error { return nil }

// apartOf returns the descendants of a process. The process must be stopped, so it starts no
// children and waits for none, and its children's numbers stay valid.
func apartOf(pid int) []int { return descendants(pid)[1:] }

// pauseApart stops the descendants of a stopped process, and makes the guard kill them if this
// process ends.
func (p *Proc) pauseApart() error {
	for range 2 { // the second pass finds the children of a process that had not stopped yet
		list := apartOf(p.pid)
		for _, id := range list {
			if err := p.apart.watch(id); err != nil {
				return err
			}
			_ = unix.Kill(id, unix.SIGSTOP) // the process may just have ended
		}
		if !awaitAll(list, stopped) {
			return fmt.Errorf("children of process %d have not stopped within %v", p.pid, Patience)
		}
	}
	return nil
}

// resumeApart continues the descendants before their parent continues.
func (p *Proc) resumeApart() {
	for _, id := range apartOf(p.pid) {
		_ = unix.Kill(id, unix.SIGCONT)
		_ = p.apart.forget(id) // a guard that has ended watches no process
	}
}

// killApart kills the descendants of a process, and returns them. The process itself stays stopped.
func (p *Proc) killApart() []int {
	if p.signal(suspend) != nil || awaitStop(p.pid) != nil {
		return nil
	}
	list := apartOf(p.pid)
	for _, id := range list {
		_ = unix.Kill(id, unix.SIGKILL)
		_ = p.apart.forget(id)
	}
	return list
}

// CanWatch returns nil if the system reports how long a process has waited for a processor, which
// [SchedDelay] needs.
func CanWatch() error {
	if _, _, err := waited(os.Getpid(), os.Getpid()); err != nil {
		return fmt.Errorf("proc: this system doesn't say how long a process waits for a processor: %w", err)
	}
	return nil
}

// waited returns how long a thread has run, and how long it has waited for a processor.
func waited(pid, thread int) (ran, waits time.Duration, err error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/schedstat", pid, thread))
	if err != nil {
		return 0, 0, err
	}
	if _, err = fmt.Sscan(string(text), &ran, &waits); err != nil {
		err = errors.New("/proc/PID/schedstat has no such numbers")
	}
	return ran, waits, err
}

// SchedDelay measures the delay of a process and its children from outside: the time that they
// waited for a processor. It does not see processes that begin and end between two measurements.
// The zero value is ready for use. Only one goroutine at a time may use it.
type SchedDelay struct {
	seen map[int]thread
	at   time.Time
}

// thread is the last measurement of one thread.
type thread struct {
	ran, waits time.Duration
	counted    time.Duration // part of the current wait that was already counted
}

// Measure returns the delay since the previous call, summed over all threads of the process and its
// descendants. Measure also returns the descendants that have left the process's group, which
// signals to the group do not reach. The first call returns no delay.
func (w *SchedDelay) Measure(pid int) (late time.Duration, strays []int) {
	now := time.Now()
	seen := map[int]thread{}
	for _, member := range descendants(pid) {
		if member != pid {
			if g := group(member); g != 0 && g != pid {
				strays = append(strays, member)
			}
		}
		for _, id := range threads(member) {
			ran, waits, err := waited(member, id)
			if err != nil {
				continue // the thread has ended in the meantime
			}
			was, known := w.seen[id]
			is := thread{ran: ran, waits: waits, counted: was.counted}
			switch grown := waits - was.waits; {
			case !known: // a new thread's wait may precede the previous measurement
			case grown == 0 && ran == was.ran && state(member, id) == 'R':
				is.counted += now.Sub(w.at) // the thread still waits
				late += now.Sub(w.at)
			case grown > 0:
				late += max(0, grown-was.counted)
				is.counted = 0
			}
			seen[id] = is
		}
	}
	w.seen, w.at = seen, now
	return late, strays
}
