package reaper

import "syscall"

// attributes gives the process a group of its own: a signal that a terminal sends to this process
// must not end the watchman first. If the watchman is stopped when this process ends, the kernel
// continues the watchman. The kernel does so at the end of any thread, which does no harm.
func attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGCONT}
}
