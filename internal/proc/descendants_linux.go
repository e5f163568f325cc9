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

// descendants returns the numbers of a process and of its descendants, those that have
// ended left out. Who lost the parent between belongs to it if [Adopt] was called and it
// is in the process's group still.
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
			continue // it ended meanwhile
		}
		for _, word := range strings.Fields(string(text)) {
			if id, err := strconv.Atoi(word); err == nil {
				list = append(list, id)
			}
		}
	}
	return list
}

// Adopt makes this process the parent of each descendant that loses its own, from now
// on and for good, so that none is out of sight.
func Adopt() error {
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("child: become the parent of orphans: %w", err)
	}
	return nil
}

// Orphans returns the processes that this one has adopted and that are in another
// session: a daemon makes itself one, and nothing that this process starts. No signal to
// a group reaches them.
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

// EndOrphan kills one of the [Orphans], and returns when it has ended. The error is a
// [StillRunningError] if the system takes its time over it.
func EndOrphan(pid int) error {
	_ = destroyOne(pid) // it may just have ended
	for deadline := time.Now().Add(Patience); !reap(pid); time.Sleep(100 * time.Microsecond) {
		if time.Now().After(deadline) {
			return &StillRunningError{PID: pid}
		}
	}
	return nil
}

// reap reports whether an adopted process has ended, and waits for it then.
func reap(pid int) bool {
	for {
		id, err := unix.Wait4(pid, nil, unix.WNOHANG, nil)
		if !errors.Is(err, unix.EINTR) {
			return id != 0 // an error says that another goroutine has waited for it
		}
	}
}

// reapGroup waits for the adopted members of the group that a process led, who were
// killed, and which must have been waited for itself. It blocks until there are none.
func reapGroup(pid int) {
	for {
		if _, err := unix.Wait4(-pid, nil, 0, nil); err != nil && !errors.Is(err, unix.EINTR) {
			return
		}
	}
}

// threads returns the numbers of a process's threads, none if it has ended.
func threads(pid int) (list []int) {
	dir, err := os.Open(fmt.Sprintf("/proc/%d/task", pid))
	if err != nil {
		return nil
	}
	defer dir.Close()
	names, _ := dir.Readdirnames(-1) // of one that has ended there are none
	for _, name := range names {
		if id, err := strconv.Atoi(name); err == nil {
			list = append(list, id)
		}
	}
	return list
}

// state returns the letter of a thread's state, 0 if it has ended.
func state(pid, thread int) byte {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/stat", pid, thread))
	// The program's name, in brackets, may hold anything.
	at := bytes.LastIndexByte(text, ')')
	if err != nil || at < 0 || at+2 >= len(text) {
		return 0
	}
	return text[at+2]
}

// all reports whether every thread of the processes is in one of these states, or has
// ended.
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

// States of threads: those that do nothing any more, and those that do nothing
// until they are continued.
const (
	dead    = "ZX"
	stopped = "Tt" + dead
)

// grouped returns the descendants of a process that are of its own group: others take no signal
// to it.
func grouped(pid int, list []int) []int {
	return slices.DeleteFunc(slices.Clone(list), func(other int) bool { return other == pid || group(other) != pid })
}

// awaitAll blocks until processes are all in one of these states: a signal returns before it has
// done anything. It gives up after Patience.
func awaitAll(list []int, states string) bool {
	for deadline := time.Now().Add(Patience); len(list) > 0 && !all(list, states); time.Sleep(100 * time.Microsecond) {
		if time.Now().After(deadline) {
			return false
		}
	}
	return true
}

// knowsFamilies returns nil: the system says whose child a process is.
func knowsFamilies() error { return nil }

// apartOf returns the descendants of a process, which must be stopped: so it begets none, and waits
// for none, and their numbers are theirs.
func apartOf(pid int) []int { return descendants(pid)[1:] }

// pauseApart stops the descendants of a process that has stopped, and has them die with this process.
func (p *Proc) pauseApart() error {
	for range 2 { // who was begotten by one that had not stopped yet is seen the second time
		list := apartOf(p.pid)
		for _, id := range list {
			if err := p.apart.watch(id); err != nil {
				return err
			}
			_ = unix.Kill(id, unix.SIGSTOP) // it may just have ended
		}
		if !awaitAll(list, stopped) {
			return fmt.Errorf("children of process %d have not stopped within %v", p.pid, Patience)
		}
	}
	return nil
}

// resumeApart lets descendants go on before their parent does.
func (p *Proc) resumeApart() {
	for _, id := range apartOf(p.pid) {
		_ = unix.Kill(id, unix.SIGCONT)
		_ = p.apart.forget(id) // a guard that is gone watches nobody
	}
}

// killApart kills the descendants of a process, and returns them. The process stays stopped.
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

// CanWatch returns nil if this system says how long a process has waited for a
// processor, as a [SchedDelay] wants to know.
func CanWatch() error {
	if _, _, err := waited(os.Getpid(), os.Getpid()); err != nil {
		return fmt.Errorf("child: this system doesn't say how long a process waits for a processor: %w", err)
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

// A SchedDelay finds out from outside how late a process was, and its children: how long
// they wanted a processor and had none. What it doesn't see is processes that begin
// and end between two looks. The zero value has seen nothing. It is for one goroutine at a time.
type SchedDelay struct {
	seen map[int]thread
	at   time.Time
}

// thread is what is known of one.
type thread struct {
	ran, waits time.Duration
	counted    time.Duration // of a wait that it hasn't ended
}

// Measure returns by how much the process was late since the last look, of all its threads
// together, and those of its descendants that have left its group: no signal to it
// reaches them. The first look returns nothing.
func (w *SchedDelay) Measure(p *Proc) (late time.Duration, strays []int) {
	now := time.Now()
	seen := map[int]thread{}
	for _, pid := range descendants(p.pid) {
		if pid != p.pid {
			if g := group(pid); g != 0 && g != p.pid {
				strays = append(strays, pid)
			}
		}
		for _, id := range threads(pid) {
			ran, waits, err := waited(pid, id)
			if err != nil {
				continue // it ended meanwhile
			}
			was, known := w.seen[id]
			is := thread{ran: ran, waits: waits, counted: was.counted}
			switch grown := waits - was.waits; {
			case !known: // the wait before its first look may have been before ours
			case grown == 0 && ran == was.ran && state(pid, id) == 'R':
				is.counted += now.Sub(w.at) // it waits still
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
