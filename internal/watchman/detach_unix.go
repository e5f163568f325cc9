//go:build unix

package watchman

import (
	"os/exec"
	"syscall"
)

// detach gives the process a group of its own: what ends this one from a
// terminal must not end it first.
func detach(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }
