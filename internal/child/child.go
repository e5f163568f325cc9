// Package child starts processes that can be stopped, continued and killed,
// and that don't outlive this process, however it ends. It imports nothing of
// this module.
package child

import (
	"errors"
	"fmt"
	"os/exec"
	"runtime"
	"sync"
)

// A Launcher starts processes that die with this one. On Linux the system
// kills a child when the thread that started it ends, and Go ends threads as
// it likes. So one goroutine, locked to its thread, starts them all; it lives
// until Close. Elsewhere children outlive a parent that is killed.
// Make one with [NewLauncher]. Safe for concurrent use.
type Launcher struct {
	jobs  chan job
	ended chan struct{}
}

type job struct {
	cmd  *exec.Cmd
	done chan error
}

// NewLauncher returns a launcher.
func NewLauncher() *Launcher {
	l := &Launcher{jobs: make(chan job), ended: make(chan struct{})}
	go func() {
		defer close(l.ended)
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		for j := range l.jobs {
			j.done <- j.cmd.Start()
		}
	}()
	return l
}

// Close ends the launcher. Everything that it started must have ended, and
// nothing be started any more.
func (l *Launcher) Close() {
	close(l.jobs)
	<-l.ended
}

// Start starts the command in a process group of its own, which the caller
// must not wait for: the Proc does.
func (l *Launcher) Start(cmd *exec.Cmd) (*Proc, error) {
	isolate(cmd)
	j := job{cmd: cmd, done: make(chan error)}
	l.jobs <- j
	if err := <-j.done; err != nil {
		return nil, err
	}
	p := &Proc{pid: cmd.Process.Pid, ended: make(chan struct{})}
	go p.await(cmd)
	return p, nil
}

// A Proc is a process that was started. Safe for concurrent use.
type Proc struct {
	pid   int
	ended chan struct{} // closed when it has ended and was waited for

	mu     sync.Mutex // a signal is sent only while the number is its own
	reaped bool
	status error // what Wait returned; valid after ended
}

func (p *Proc) await(cmd *exec.Cmd) {
	lock := awaitEnd(p.pid)
	if lock {
		p.mu.Lock()
	}
	p.status = cmd.Wait()
	if !lock {
		p.mu.Lock()
	}
	p.reaped = true
	p.mu.Unlock()
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

// PID returns the process's number, which may be another's once it has ended.
func (p *Proc) PID() int { return p.pid }

// Pause stops the process and returns when it has stopped.
func (p *Proc) Pause() error {
	if err := p.signal(suspend); err != nil {
		return err
	}
	return awaitStop(p.pid)
}

// Resume lets a stopped process go on.
func (p *Proc) Resume() error { return p.signal(proceed) }

// Kill ends the process, stopped or not, and its children, and returns when
// it has ended. No effect on one that has.
func (p *Proc) Kill() error {
	if err := p.signal(destroy); err != nil && !errors.Is(err, ErrEnded) {
		return fmt.Errorf("kill process %d: %w", p.pid, err)
	}
	<-p.ended
	return nil
}

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
