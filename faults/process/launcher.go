package process

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"sync"
)

// A launcher starts processes that die with this one. On Linux the system
// kills a child when the thread that started it ends, and Go ends threads as
// it likes. So one goroutine, locked to its thread, starts them all; it lives
// until close. Elsewhere a guard kills them.
type launcher struct {
	jobs  chan job
	ended chan struct{}
	guard guard
}

// A guard kills the process groups that it watches when this process has
// ended, where the system itself doesn't.
type guard interface {
	watch(pid int) error
	forget(pid int) error
	close() error
}

type job struct {
	cmd  *exec.Cmd
	done chan error
}

func newLauncher() (*launcher, error) {
	guard, err := newGuard()
	if err != nil {
		return nil, err
	}
	l := &launcher{jobs: make(chan job), ended: make(chan struct{}), guard: guard}
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

// close ends the launcher, when all that it started has ended.
func (l *launcher) close() error {
	close(l.jobs)
	<-l.ended
	return l.guard.close()
}

// launch starts the command in a process group of its own, with nothing on
// its standard input and its output appended to the file.
func (l *launcher) launch(cmd *exec.Cmd, log string) (*proc, error) {
	// The child gets the file itself: with a pipe, somebody had to read it.
	out, err := os.OpenFile(log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	defer out.Close()
	cmd.Stdout, cmd.Stderr = out, out
	isolate(cmd)
	j := job{cmd: cmd, done: make(chan error)}
	l.jobs <- j
	if err := <-j.done; err != nil {
		return nil, err
	}
	p := &proc{pid: cmd.Process.Pid, ended: make(chan struct{})}
	err = l.guard.watch(p.pid)
	go p.await(cmd, l.guard)
	if err != nil {
		return nil, errors.Join(err, p.kill())
	}
	return p, nil
}

// A proc is a process that was started. Safe for concurrent use.
type proc struct {
	pid   int
	ended chan struct{} // closed when it has ended and was waited for

	mu     sync.Mutex // a signal is sent only while the number is its own
	reaped bool
	status error // what Wait returned; valid after ended
}

// await waits for the process. Where the system can say that it has ended
// before its number is free, nobody uses the number any longer.
func (p *proc) await(cmd *exec.Cmd, guard guard) {
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
	_ = guard.forget(p.pid) // a guard that is gone watches nobody
	close(p.ended)
}

var errEnded = errors.New("its process has ended")

// signal sends a signal to the process and its children.
func (p *proc) signal(send func(pid int) error) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.reaped {
		return errEnded
	}
	return send(p.pid)
}

// pause returns when the process has stopped.
func (p *proc) pause() error {
	if err := p.signal(suspend); err != nil {
		return err
	}
	return awaitStop(p.pid)
}

func (p *proc) resume() error { return p.signal(proceed) }

// kill returns when the process has ended. No effect on one that has.
func (p *proc) kill() error {
	if err := p.signal(destroy); err != nil && !errors.Is(err, errEnded) {
		return fmt.Errorf("kill process %d: %w", p.pid, err)
	}
	<-p.ended
	return nil
}

// alive reports whether the process has not ended.
func (p *proc) alive() bool {
	select {
	case <-p.ended:
		return false
	default:
		return true
	}
}
