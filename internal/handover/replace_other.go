//go:build !unix

package handover

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"os/signal"
)

func replace(file string, args []string) (int, error) {
	signal.Ignore(os.Interrupt) // the console interrupts the child, too
	cmd := exec.Command(file)
	cmd.Args = args
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	err := cmd.Run()
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
		return exit.ExitCode(), nil
	}
	return 0, err
}

// run runs a command, which run kills when ctx is done.
func run(ctx context.Context, cmd *exec.Cmd) error {
	if err := cmd.Start(); err != nil {
		return err
	}
	stop := context.AfterFunc(ctx, func() { _ = cmd.Process.Kill() }) // the process may have ended
	defer stop()
	return cmd.Wait()
}
