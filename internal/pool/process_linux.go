package pool

import (
	"os/exec"
	"runtime"
	"syscall"
)

// dieWithParent makes the system end the process when the thread that started
// it ends, so that no worker outlives a parent that was killed. It is asked, as
// it may have something to clear away.
func dieWithParent(cmd *exec.Cmd) {
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = new(syscall.SysProcAttr)
	}
	cmd.SysProcAttr.Pdeathsig = syscall.SIGTERM
}

// lockThread keeps the calling goroutine's thread until the returned function
// is called.
func lockThread() (unlock func()) {
	runtime.LockOSThread()
	return runtime.UnlockOSThread
}
