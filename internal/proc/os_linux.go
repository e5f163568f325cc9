package proc

import (
	"errors"
	"math"
	"os/exec"
	"syscall"

	"golang.org/x/sys/unix"
)

// dieWithParent makes the system kill the process when the thread that
// started it ends: see Launcher.
func dieWithParent(cmd *exec.Cmd) { cmd.SysProcAttr.Pdeathsig = syscall.SIGKILL }

// keepDescriptors lets no process that is started from now on inherit what
// this one inherited itself. What Go opens is closed anyway. Kernels before
// 5.11 don't know the call.
func keepDescriptors() { _ = unix.CloseRange(3, math.MaxUint32, unix.CLOSE_RANGE_CLOEXEC) }

// awaitStop blocks until every thread of the process has stopped, or the
// process has ended. A signal alone returns before it has done anything.
func awaitStop(pid int) error { return await(pid, unix.WSTOPPED|unix.WEXITED) }

// awaitEnd blocks until the process has ended, leaves it to be waited for, and
// reports whether it did.
func awaitEnd(pid int) bool { return await(pid, unix.WEXITED) == nil }

func await(pid, what int) error {
	for {
		err := unix.Waitid(unix.P_PID, pid, nil, what|unix.WNOWAIT, nil)
		if !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}
