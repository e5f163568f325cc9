//go:build unix

package handover

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"syscall"

	"github.com/lockfault/lockfault/internal/proc"
)

func replace(file string, args []string) (int, error) {
	return 0, &os.PathError{Op: "exec", Path: file, Err: syscall.Exec(file, args, os.Environ())}
}

// run runs a command in a process group of its own, which ends with this process. run kills the group
// when ctx is done.
func run(ctx context.Context, cmd *exec.Cmd) error {
	launcher, err := proc.NewLauncher()
	if err != nil {
		return err
	}
	p, err := launcher.Start(cmd)
	if err == nil {
		select {
		case <-p.Ended():
			err = p.Status()
		case <-ctx.Done():
			err = errors.Join(ctx.Err(), p.Kill())
		}
	}
	return errors.Join(err, launcher.Close())
}
