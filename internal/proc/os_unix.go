//go:build unix

package proc

import (
	"os/exec"
	"syscall"
)

// Supported returns nil if processes can be stopped on this system, and else
// an error that says what to do instead.
func Supported() error { return nil }

// isolate gives the process a group of its own: Ctrl-C in a terminal is for
// the one who started it, and a signal to the group reaches its children.
func isolate(cmd *exec.Cmd) {
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = new(syscall.SysProcAttr)
	}
	cmd.SysProcAttr.Setpgid = true
	dieWithParent(cmd)
}

// group returns the process group, 0 if there is no such process.
func group(pid int) int {
	id, err := syscall.Getpgid(pid)
	if err != nil {
		return 0
	}
	return id
}

// The signals go to the whole group of the process, which must not have been
// waited for: its number could be another's by now.

func suspend(pid int) error { return syscall.Kill(-pid, syscall.SIGSTOP) }
func proceed(pid int) error { return syscall.Kill(-pid, syscall.SIGCONT) }
func destroy(pid int) error { return syscall.Kill(-pid, syscall.SIGKILL) }

// destroyOne kills a process that is in another group.
func destroyOne(pid int) error { return syscall.Kill(pid, syscall.SIGKILL) }
func ask(pid int) error        { return syscall.Kill(pid, syscall.SIGQUIT) }
