//go:build unix

package stdio

import (
	"os"
	"syscall"
)

// Output takes the process's standard output away from everybody else: it returns
// the file that it was, and from now on descriptor 1 is standard error, whoever
// writes to it, by os.Stdout or by a copy that a package made when it was
// initialised. What was printed before is printed.
func Output() (*os.File, error) {
	fd, err := syscall.Dup(1)
	if err != nil {
		return nil, os.NewSyscallError("dup", err)
	}
	syscall.CloseOnExec(fd)
	if err := dup2(2, 1); err != nil {
		syscall.Close(fd)
		return nil, os.NewSyscallError("dup2", err)
	}
	os.Stdout = os.Stderr
	return os.NewFile(uintptr(fd), "standard output"), nil
}
