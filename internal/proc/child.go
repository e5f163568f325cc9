// Package proc starts processes that can be stopped, continued and killed, and that do not outlive
// this process, however it ends. The inputs are commands, the outputs [Proc]s. The package also
// measures delays of processes. The only package of this module that proc imports is reaper.
package proc

import (
	"errors"
	"fmt"
	"os/exec"
	"runtime"
	"sync"
	"time"
)

// Launcher starts processes that die with this process, together with their process groups. Make it
// with [NewLauncher]. A Launcher is safe for concurrent use.
//
// On Linux the system kills a child when the thread that started it ends, and Go ends threads at
// any time. Therefore one goroutine, locked to its thread, starts all processes; it lives until
// Close. A guard kills the groups: on Linux a stopped grandchild would remain, and on other systems
// any child.
type Launcher struct {
	jobs  chan job
	ended chan struct{}
	guard guard
	apart bool // children lead groups of their own
}

// guard kills the process groups that it watches after this process has ended.
type guard interface {
	watch(pid int) error
	forget(pid int) error
	close() error
}

type job struct {
	cmd  *exec.Cmd
	done chan error
}

// NewLauncher returns a launcher. The error names the missing feature of the system, or is the
// guard's start error.
func NewLauncher() (*Launcher, error) { return launcher(newGroupGuard()) }

// NewGuardedLauncher is NewLauncher for programs whose descendants may lose their parent and stay
// in the group. From now on, this process adopts such descendants ([Adopt]).
func NewGuardedLauncher() (*Launcher, error) {
	if err := Adopt(); err != nil {
		return nil, err
	}
	return launcher(newGroupGuard())
}

// NewFamilyLauncher is NewLauncher for servers that give each of their children its own process
// group. Signals to the server do not reach these groups, so the children are stopped, continued
// and killed together with the server. Children that are not stopped must detect the death of their
// parent themselves; stopped children are killed with this process. NewFamilyLauncher needs Linux.
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

// Close ends the launcher. All of its processes must have ended, and no process may be started
// afterwards. Call it once.
func (l *Launcher) Close() error {
	close(l.jobs)
	<-l.ended
	return l.guard.close()
}

// Start starts the command in its own process group, with only the descriptors that cmd names. The
// caller must not wait for the process, because the Proc does.
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

// Proc is a started process. A Proc is safe for concurrent use.
type Proc struct {
	pid   int
	ended chan struct{} // closed when the process has ended and was waited for
	apart guard         // guard of children in groups of their own; nil if there are no such children

	mu     sync.Mutex // ensures that a signal is sent only while the process still has its number
	reaped bool
	status error // the result of Wait; valid after ended
}

// await waits for the process. If the system can report the end before the number is free, signals
// stop before the number is freed, and the process's children, which may be configured to outlive
// it, are killed.
func (p *Proc) await(cmd *exec.Cmd, guard guard) {
	lock := awaitEnd(p.pid)
	if lock {
		p.mu.Lock()
		EndGroup(p.pid)
	}
	p.status = cmd.Wait()
	go reapGroup(p.pid) // no caller waits until the system has ended the group
	if !lock {
		p.mu.Lock()
	}
	p.reaped = true
	p.mu.Unlock()
	_ = guard.forget(p.pid) // a guard that has ended watches no process
	close(p.ended)
}

// ErrEnded reports that a process cannot receive a signal because it has ended.
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

// AwaitEnd blocks until a process that this process started, and that was not waited for yet, has
// ended. AwaitEnd does not wait for the process in the system's sense, so its number stays
// reserved. AwaitEnd returns false at once if the system does not support this.
func AwaitEnd(pid int) bool { return awaitEnd(pid) }

// EndGroup kills the rest of a process's group. The process must not have been waited for.
func EndGroup(pid int) { _ = destroy(pid) } // most groups are empty

// EndStray kills a descendant that a [SchedDelay] has found and that has left the process's group.
// No other call would end it.
func (p *Proc) EndStray(pid int) {
	if g := group(pid); g != 0 && g != p.pid && pid != p.pid {
		_ = destroyOne(pid) // the process may just have ended
	}
}

// PID returns the process's number. After the end of the process, another process may have that
// number.
func (p *Proc) PID() int { return p.pid }

// Leads reports whether the process with the given number is a different process in the group that
// this process leads.
func (p *Proc) Leads(pid int) bool { return pid != p.pid && group(pid) == p.pid }

// Pause stops the process and its children, and returns when they have stopped or ended. The error
// wraps [ErrEnded] if the process had already ended.
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
	for range 2 { // the second pass finds the children of a process that had not stopped yet
		if !awaitAll(grouped(p.pid, descendants(p.pid)), stopped) {
			return fmt.Errorf("children of process %d have not stopped within %v", p.pid, Patience)
		}
	}
	return nil
}

// Resume continues a stopped process and its children. Resume has no effect on a process that is
// not stopped; the error wraps [ErrEnded] if the process has ended.
func (p *Proc) Resume() error {
	if p.apart != nil {
		p.resumeApart()
	}
	return p.signal(proceed)
}

// Ask makes the process, if it is a Go program, print its goroutines' stacks on its standard error,
// which ends the process. Ask does not wait for the end.
func (p *Proc) Ask() error { return p.signal(ask) }

// Kill ends the process, stopped or not, and its children, and returns when they have ended. Kill
// has no effect on a process that has ended. The error wraps a [StillRunningError] if the process
// has not ended within [Patience].
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

// Patience is how long [Proc.Kill] waits for the end of a process. A killed process itself needs no
// time, but the system must end it: on Linux under load this was seen to take minutes, while one of
// the kernel's threads held the lock of the process's memory and got no processor.
const Patience = 10 * time.Second

// StillRunningError is the error of a killed process that has not ended within [Patience]. The
// process ends as soon as the system ends it.
type StillRunningError struct{ PID int }

func (e *StillRunningError) Error() string {
	return fmt.Sprintf("process %d was killed, and the system has not ended it within %v", e.PID, Patience)
}

// Timeout returns true, because the error is only about time.
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

// Status returns the result of [exec.Cmd.Wait]. The process must have ended.
func (p *Proc) Status() error { return p.status }
