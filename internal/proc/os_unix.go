//go:build unix

package proc

import (
	"os/exec"
	"syscall"
)

// Supported returns nil if processes can be stopped on this system, and otherwise an error with an
// alternative.
func Supported() error { return nil }

// isolate gives the process its own group: Ctrl-C in a terminal reaches only the parent, and a
// signal to the group reaches the process's children.
func isolate(cmd *exec.Cmd) {
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = new(syscall.SysProcAttr)
	}
	cmd.SysProcAttr.Setpgid = true
	dieWithParent(cmd)
}

// group returns the process group of a process, or 0 if the process does not exist.
func group(pid int) int {
	id, err := syscall.Getpgid(pid)
	if err != nil {
		return 0
	}
	return id
}

// The signals go to the whole group of the process. The process must not have been waited for,
// because its number could belong to another process afterwards.

func suspend(pid int) error { return syscall.Kill(-pid, syscall.SIGSTOP) }
func proceed(pid int) error { return syscall.Kill(-pid, syscall.SIGCONT) }
func destroy(pid int) error { return syscall.Kill(-pid, syscall.SIGKILL) }

// destroyOne kills a process in another group.
func destroyOne(pid int) error { return syscall.Kill(pid, syscall.SIGKILL) }
func ask(pid int) error        { return syscall.Kill(pid, syscall.SIGQUIT) }
