package workerpool

import (
	"os/exec"
	"syscall"
)

// wakeOrphan makes the kernel send SIGCONT to the process when its parent dies. A stopped worker
// then sees that its input has ended, and exits as usual. SIGTERM would have no effect until
// another process continued the worker, and SIGKILL would leave no time to clean up. The kernel
// also sends the signal when the thread that started the process ends; a running worker ignores it.
func wakeOrphan(cmd *exec.Cmd) {
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = new(syscall.SysProcAttr)
	}
	cmd.SysProcAttr.Pdeathsig = syscall.SIGCONT
}
