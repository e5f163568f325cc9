// Package child starts processes that can be stopped, continued and killed,
// and that don't outlive this process, however it ends. Commands go in,
// [Proc]s come out; of this module it imports only watchman.
package proc

import (
	"errors"
	"fmt"
	"os/exec"
	"runtime"
	"sync"
	"time"
)

// A Launcher starts processes that die with this one, and their process groups too. On Linux the
// system kills a child when the thread that started it ends, and Go ends threads as it likes. So one
// goroutine, locked to its thread, starts them all; it lives until Close. A guard kills the groups: on
// Linux a stopped child of a child would stay, and elsewhere any. Make one with [NewLauncher]. Safe for
// concurrent use.
type Launcher struct {
	jobs  chan job
	ended chan struct{}
	guard guard
	apart bool // children lead groups of their own
}

// A guard kills the process groups that it watches when this process has ended.
type guard interface {
	watch(pid int) error
	forget(pid int) error
	close() error
}

type job struct {
	cmd  *exec.Cmd
	done chan error
}

// NewLauncher returns a launcher. The error says what the system lacks, or why
// the guard didn't start.
func NewLauncher() (*Launcher, error) { return launcher(newGroupGuard()) }

// NewGuardedLauncher is NewLauncher for programs whose children may lose their parent and stay in its
// group. This process adopts from now on ([Adopt]).
func NewGuardedLauncher() (*Launcher, error) {
	if err := Adopt(); err != nil {
		return nil, err
	}
	return launcher(newGroupGuard())
}

// NewFamilyLauncher is NewLauncher for servers that give each of their children a process group
// of its own, which no signal to the server reaches: they are stopped, continued and killed with
// it. Those that are not stopped must notice by themselves when their parent has died; the others are
// killed with this process. It needs Linux.
func NewFamilyLauncher() (*Launcher, error) {
	if err := knowsFamilies(); err != nil {
		return nil, err
	}
	l, err := launcher(newGroupGuard())
	if err == nil {
		l.apart = true
	}
	return l, err
}

func launcher(guard guard, err error) (*Launcher, error) {
	if err != nil {
		return nil, err
	}
	l := &Launcher{jobs: make(chan job), ended: make(chan struct{}), guard: guard}
	go func() {
		defer close(l.ended)
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		for j := range l.jobs {
			keepDescriptors()
			j.done <- j.cmd.Start()
		}
	}()
	return l, nil
}

// Close ends the launcher. Everything that it started must have ended, and
// nothing be started any more. Call it once.
func (l *Launcher) Close() error {
	close(l.jobs)
	<-l.ended
	return l.guard.close()
}

// Start starts the command in a process group of its own, with no descriptors
// but those that cmd names. The caller must not wait for it: the Proc does.
func (l *Launcher) Start(cmd *exec.Cmd) (*Proc, error) {
	isolate(cmd)
	j := job{cmd: cmd, done: make(chan error)}
	l.jobs <- j
	if err := <-j.done; err != nil {
		return nil, err
	}
	p := &Proc{pid: cmd.Process.Pid, ended: make(chan struct{})}
	if l.apart {
		p.apart = l.guard
	}
	err := l.guard.watch(p.pid)
	go p.await(cmd, l.guard)
	if err != nil {
		return nil, errors.Join(err, p.Kill())
	}
	return p, nil
}

// A Proc is a process that was started. Safe for concurrent use.
type Proc struct {
	pid   int
	ended chan struct{} // closed when it has ended and was waited for
	apart guard         // of children in groups of their own; nil if nobody is to look for any

	mu     sync.Mutex // a signal is sent only while the number is its own
	reaped bool
	status error // what Wait returned; valid after ended
}

// await waits for the process. Where the system can say that it has ended
// before its number is free, nobody uses the number any longer, and its children,
// who may have been told to outlive it, end with it.
func (p *Proc) await(cmd *exec.Cmd, guard guard) {
	lock := awaitEnd(p.pid)
	if lock {
		p.mu.Lock()
		EndGroup(p.pid)
	}
	p.status = cmd.Wait()
	go reapGroup(p.pid) // nobody waits for the system to get round to it
	if !lock {
		p.mu.Lock()
	}
	p.reaped = true
	p.mu.Unlock()
	_ = guard.forget(p.pid) // a guard that is gone watches nobody
	close(p.ended)
}

// ErrEnded says that a process can't take a signal because it has ended.
var ErrEnded = errors.New("its process has ended")

// signal sends a signal to the process and its children.
func (p *Proc) signal(send func(pid int) error) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.reaped {
		return ErrEnded
	}
	return send(p.pid)
}

// AwaitEnd blocks until a process that this one started, and that nobody has waited
// for, has ended, and leaves it to be waited for: until then its number is its own. It
// returns false at once where the system can't say that.
func AwaitEnd(pid int) bool { return awaitEnd(pid) }

// EndGroup kills what is left of the group of processes that a process led, which
// must not have been waited for.
func EndGroup(pid int) { _ = destroy(pid) } // nobody is left of most

// EndStray kills a process that a [SchedDelay] found among the process's descendants, and
// that has left its group, which nothing else would end.
func (p *Proc) EndStray(pid int) {
	if g := group(pid); g != 0 && g != p.pid && pid != p.pid {
		_ = destroyOne(pid) // it may just have ended
	}
}

// PID returns the process's number, which may be another's once it has ended.
func (p *Proc) PID() int { return p.pid }

// Leads reports whether the process of that number is another one, which this
// one, or a child of it, started.
func (p *Proc) Leads(pid int) bool { return pid != p.pid && group(pid) == p.pid }

// Pause stops the process and its children, and returns when they have
// stopped or ended. The error wraps [ErrEnded] if it had ended before.
func (p *Proc) Pause() error {
	if err := p.signal(suspend); err != nil {
		return err
	}
	if err := awaitStop(p.pid); err != nil {
		return err
	}
	if p.apart != nil {
		return p.pauseApart()
	}
	for range 2 { // who was begotten by one that had not stopped yet is seen the second time
		if !awaitAll(grouped(p.pid, descendants(p.pid)), stopped) {
			return fmt.Errorf("children of process %d have not stopped within %v", p.pid, Patience)
		}
	}
	return nil
}

// Resume lets a stopped process and its children go on. No effect on one that
// is not stopped; the error wraps [ErrEnded] if it has ended.
func (p *Proc) Resume() error {
	if p.apart != nil {
		p.resumeApart()
	}
	return p.signal(proceed)
}

// Ask asks the process, if it is a Go program, to say on its standard error what its
// goroutines do, which ends it. It doesn't wait for that.
func (p *Proc) Ask() error { return p.signal(ask) }

// Kill ends the process, stopped or not, and its children, and returns when
// they have ended. No effect on one that has. The error wraps a [StillRunningError] if the
// system takes its time over it.
func (p *Proc) Kill() error {
	var children []int
	switch {
	case p.apart != nil:
		children = p.killApart()
	case p.Alive():
		children = descendants(p.pid)
	}
	if err := p.signal(destroy); err != nil && !errors.Is(err, ErrEnded) {
		return fmt.Errorf("kill process %d: %w", p.pid, err)
	}
	alarm := time.NewTimer(Patience)
	defer alarm.Stop()
	select {
	case <-p.ended:
	case <-alarm.C:
		return &StillRunningError{PID: p.pid}
	}
	if p.apart == nil {
		children = grouped(p.pid, children)
	}
	if !awaitAll(children, dead) {
		return &StillRunningError{PID: p.pid}
	}
	return nil
}

// Patience is how long [Proc.Kill] waits for a process to end. Nothing that a
// killed process does takes any time, but the system must get round to ending it: under
// load Linux was seen to take minutes, while a thread of its own kept the lock of
// the process's memory and got no processor.
const Patience = 10 * time.Second

// StillRunningError is the error of a process that was killed and has not ended within
// [Patience]. It ends as soon as the system gets round to it.
type StillRunningError struct{ PID int }

func (e *StillRunningError) Error() string {
	return fmt.Sprintf("process %d was killed, and the system has not ended it within %v", e.PID, Patience)
}

// Timeout reports true: nothing is wrong but how long it took.
func (e *StillRunningError) Timeout() bool { return true }

// Ended returns a channel that is closed when the process has ended.
func (p *Proc) Ended() <-chan struct{} { return p.ended }

// Alive reports whether the process has not ended.
func (p *Proc) Alive() bool {
	select {
	case <-p.ended:
		return false
	default:
		return true
	}
}

// Status returns how the process ended, as [exec.Cmd.Wait] says it. It must
// have ended.
func (p *Proc) Status() error { return p.status }
