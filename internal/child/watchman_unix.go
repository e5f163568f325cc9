//go:build unix

package child

import (
	"errors"
	"fmt"
	"io"
	"os/exec"
	"sync"
	"syscall"
)

// A watchman is a guard for systems that have no better: a shell that reads
// what to watch from a pipe of ours, whose end is our end. Safe for concurrent
// use.
type watchman struct {
	cmd *exec.Cmd

	mu   sync.Mutex
	pipe io.WriteCloser
}

// watching is the shell's program: "+ 12" is watched and "- 12" no longer.
const watching = `
list=' '
while read -r what pid; do
	case $what in
	+) list="$list$pid " ;;
	-) list="${list%% $pid *} ${list##* $pid }" ;;
	esac
done
for pid in $list; do kill -9 "-$pid"; done
`

func newWatchman() (*watchman, error) {
	// A group of its own: what ends this process from a terminal must not
	// end the watchman first.
	cmd := exec.Command("/bin/sh", "-c", watching)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	pipe, err := cmd.StdinPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		return nil, fmt.Errorf("start a watchman: %w", err)
	}
	return &watchman{cmd: cmd, pipe: pipe}, nil
}

func (w *watchman) watch(pid int) error { return w.tell('+', pid) }

func (w *watchman) forget(pid int) error { return w.tell('-', pid) }

func (w *watchman) tell(what rune, pid int) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	_, err := fmt.Fprintf(w.pipe, "%c %d\n", what, pid)
	return err
}

// close ends the watchman, who kills what he still watches.
func (w *watchman) close() error { return errors.Join(w.pipe.Close(), w.cmd.Wait()) }
