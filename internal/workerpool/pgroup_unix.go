//go:build unix

package workerpool

import (
	"os/exec"
	"syscall"
)

// lead makes the process the leader of a group of its own, which its children join,
// so that they can be ended with it.
func lead(cmd *exec.Cmd) {
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = new(syscall.SysProcAttr)
	}
	cmd.SysProcAttr.Setpgid = true
}

// endGroup kills the group that this process leads, itself too.
func endGroup() {
	if syscall.Getpgrp() == syscall.Getpid() {
		_ = syscall.Kill(0, syscall.SIGKILL)
	}
}
