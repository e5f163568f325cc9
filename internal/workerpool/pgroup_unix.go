//go:build unix

package workerpool

import (
	"os/exec"
	"syscall"
)

// lead makes the process the leader of a new process group. Its children join the group, so that
// they can be ended together.
func lead(cmd *exec.Cmd) {
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = new(syscall.SysProcAttr)
	}
	cmd.SysProcAttr.Setpgid = true
}

// endGroup kills the process group that this process leads, including this process.
func endGroup() {
	if syscall.Getpgrp() == syscall.Getpid() {
		_ = syscall.Kill(0, syscall.SIGKILL)
	}
}
