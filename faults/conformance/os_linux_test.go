package conformance

import (
	"os/exec"
	"syscall"
)

// dieWithParent makes the system kill the server when this process is.
func dieWithParent(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
}
