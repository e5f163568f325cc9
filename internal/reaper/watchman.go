// Package reaper keeps processes that clean up after this process if it is killed. Such a process,
// the watchman, waits for the end of a pipe, which closes when this process ends.
//
// The inputs are the command of the watchman and the lines that it reads from its standard input.
// The caller defines the meaning of the lines. The package imports no package of this module.
package reaper

import (
	"fmt"
	"io"
	"os/exec"
	"sync"
	"time"
)

// Reaper is a watchman process with its replacements. A Reaper is safe for concurrent use. Methods
// of a nil Reaper have no effect.
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

// Start starts the watchman of a command, whose standard input and attributes must not be set.
// Until Close, a process that fails or is killed is replaced; a process that exits with status 0
// has finished. The command must ignore the signals of a terminal.
//
// The function brief returns the lines that a replacement must read first, which are the lines sent
// so far that are still valid; nil means no lines. Both functions may be called concurrently with
// Send.
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

// Limits of the pause before a replacement starts. The pause doubles with each failure.
const (
	shortest = 10 * time.Millisecond
	longest  = time.Second
)

// keep waits for the process and replaces it until a process succeeds, or until Close. A process
// that fails after Close is replaced once, because it may have been killed before it had finished.
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

// replace starts a process in place of one that has ended, and sends it the brief.
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
		_, _ = io.WriteString(w.pipe, line+"\n") // if the process ends again, it is replaced again
	}
	if w.closed {
		_ = w.pipe.Close()
	}
	return nil
}

// Send writes a line to the process. The caller must add the line to the brief before.
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

// Close closes the pipe, as the end of this process does, and blocks until the watchman has
// finished its work. Close continues a stopped watchman. Call it once.
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
