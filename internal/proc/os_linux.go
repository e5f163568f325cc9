package proc

import (
	"errors"
	"math"
	"os/exec"
	"syscall"

	"golang.org/x/sys/unix"
)

// dieWithParent makes the system kill the process when the thread that started it ends: see
// Launcher.
func dieWithParent(cmd *exec.Cmd) { cmd.SysProcAttr.Pdeathsig = syscall.SIGKILL }

// keepDescriptors prevents processes started from now on from inheriting the descriptors that this
// process inherited. Descriptors that Go opens are not inherited anyway. Kernels before 5.11 do not
// support the call.
func keepDescriptors() { _ = unix.CloseRange(3, math.MaxUint32, unix.CLOSE_RANGE_CLOEXEC) }

// awaitStop blocks until every thread of the process has stopped, or the process has ended. A
// signal takes effect only after its call has returned.
func awaitStop(pid int) error { return await(pid, unix.WSTOPPED|unix.WEXITED) }

// awaitEnd blocks until the process has ended, without waiting for it in the system's sense, and
// reports whether that succeeded.
func awaitEnd(pid int) bool { return await(pid, unix.WEXITED) == nil }

func await(pid, what int) error {
	for {
		err := unix.Waitid(unix.P_PID, pid, nil, what|unix.WNOWAIT, nil)
		if !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}
