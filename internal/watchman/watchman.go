// Package watchman keeps processes that clean up behind this one, should it be
// killed: they wait for its end, which they see as the end of a pipe.
//
// The command of such a process goes in, and lines that it reads from its standard
// input; what they say is between it and whoever starts it. The package imports
// nothing of this module.
package watchman

import (
	"fmt"
	"io"
	"os/exec"
	"sync"
)

// A Watchman is such a process. Safe for concurrent use; a nil one hears nothing.
type Watchman struct {
	cmd *exec.Cmd

	mu   sync.Mutex
	pipe io.WriteCloser
}

// Start starts the command, whose standard input must not be set.
func Start(cmd *exec.Cmd) (*Watchman, error) {
	detach(cmd)
	pipe, err := cmd.StdinPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		return nil, fmt.Errorf("start a watchman: %w", err)
	}
	return &Watchman{cmd: cmd, pipe: pipe}, nil
}

// Tell writes a line to the process, and ends it.
func (w *Watchman) Tell(line string) error {
	if w == nil {
		return nil
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if _, err := io.WriteString(w.pipe, line+"\n"); err != nil {
		return fmt.Errorf("tell the watchman: %w", err)
	}
	return nil
}

// Close ends the pipe, as the end of this process does, and blocks until the
// watchman has done his work. Call it once.
func (w *Watchman) Close() error {
	if w == nil {
		return nil
	}
	_ = w.pipe.Close()
	if err := w.cmd.Wait(); err != nil {
		return fmt.Errorf("the watchman: %w", err)
	}
	return nil
}
