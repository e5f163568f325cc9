//go:build unix

package reaper

import (
	"os/exec"
	"syscall"
)

func detach(cmd *exec.Cmd) { cmd.SysProcAttr = attributes() }

// wake continues the process if something has stopped it.
func wake(cmd *exec.Cmd) { _ = cmd.Process.Signal(syscall.SIGCONT) } // the process may have ended
