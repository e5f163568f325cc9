package workerpool

import (
	"os/exec"
	"syscall"
)

// wakeOrphan makes the system continue the process, should it be stopped, when
// its parent dies: then it sees that its input has ended, and leaves as it always
// does. SIGTERM would wait until somebody else continued it, and SIGKILL give it
// no time to clear away what it has started. The system does this at the end of
// any thread that has started processes; one that runs doesn't mind.
func wakeOrphan(cmd *exec.Cmd) {
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = new(syscall.SysProcAttr)
	}
	cmd.SysProcAttr.Pdeathsig = syscall.SIGCONT
}
