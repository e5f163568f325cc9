// Package watchman keeps processes that clean up after this process, should it be killed: a watchman
// waits for the end of a pipe, which comes with the end of this process.
//
// The command of such a process goes in, and lines that the process reads from its standard input. The
// meaning of the lines is the caller's. The package imports nothing of this module.
package reaper

import (
	"fmt"
	"io"
	"os/exec"
	"sync"
	"time"
)

// A Reaper is such a process, and the one that replaces it if it ends early. Safe for concurrent
// use; a nil Reaper does nothing.
type Reaper struct {
	command func() *exec.Cmd
	brief   func() []string
	closing chan struct{} // closed by Close
	ended   chan struct{} // closed when the last process has ended
	err     error         // of the last process; valid after ended

	mu     sync.Mutex
	cmd    *exec.Cmd
	pipe   io.WriteCloser
	closed bool
}

// Start starts the process of a command, whose standard input and attributes must not be set. Until
// Close, Start replaces a process that fails or is killed; one that exits with status 0 is done. The command must ignore signals that a terminal sends.
// brief returns the lines that a replacement must read first, all that is still true of those that
// were told; nil means none. Both functions may be called concurrently with Tell.
func Start(command func() *exec.Cmd, brief func() []string) (*Reaper, error) {
	w := &Reaper{command: command, brief: brief, closing: make(chan struct{}), ended: make(chan struct{})}
	if err := w.begin(); err != nil {
		return nil, fmt.Errorf("start a watchman: %w", err)
	}
	go w.keep()
	return w, nil
}

// begin starts a process. The caller holds mu, or is the only user.
func (w *Reaper) begin() error {
	cmd := w.command()
	detach(cmd)
	pipe, err := cmd.StdinPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		return err
	}
	w.cmd, w.pipe = cmd, pipe
	return nil
}

// The pause before a replacement is started doubles from one failure to the next.
const (
	shortest = 10 * time.Millisecond
	longest  = time.Second
)

// keep waits for the process and replaces it until the process succeeds, or until Close. A process that
// fails after Close is replaced once: something may have killed it before it was done.
func (w *Reaper) keep() {
	defer close(w.ended)
	for pause, last := shortest, false; ; pause = min(2*pause, longest) {
		began := time.Now()
		err := w.cmd.Wait() // only this goroutine replaces cmd
		if time.Since(began) > longest {
			pause = shortest
		}
		if err == nil {
			return
		}
		for {
			select {
			case <-w.closing:
				if last {
					w.err = err
					return
				}
				last = true
			case <-time.After(pause):
			}
			if err = w.replace(); err == nil {
				break
			}
			pause = min(2*pause, longest)
		}
	}
}

// replace starts a process in place of one that has ended, and briefs it.
func (w *Reaper) replace() error {
	var lines []string
	w.mu.Lock()
	defer w.mu.Unlock()
	if err := w.begin(); err != nil {
		return err
	}
	if w.brief != nil {
		lines = w.brief()
	}
	for _, line := range lines {
		_, _ = io.WriteString(w.pipe, line+"\n") // a process that ended again is replaced again
	}
	if w.closed {
		_ = w.pipe.Close()
	}
	return nil
}

// Send writes a line and its end to the process. What is told must be part of the brief before.
func (w *Reaper) Send(line string) error {
	if w == nil {
		return nil
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		return fmt.Errorf("tell the watchman %q: it is closed", line)
	}
	_, _ = io.WriteString(w.pipe, line+"\n") // a process that has ended is replaced and briefed
	return nil
}

// Close ends the pipe, as the end of this process does, and blocks until the watchman has done its
// work, which a stopped one does too. Call it once.
func (w *Reaper) Close() error {
	if w == nil {
		return nil
	}
	w.mu.Lock()
	w.closed = true
	_ = w.pipe.Close()
	wake(w.cmd)
	w.mu.Unlock()
	close(w.closing)
	<-w.ended
	if w.err != nil {
		return fmt.Errorf("the watchman: %w", w.err)
	}
	return nil
}
