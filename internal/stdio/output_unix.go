//go:build unix

package stdio

import (
	"os"
	"syscall"
)

// Output reserves the process's standard output for the caller. Output returns the original file,
// and descriptor 1 becomes standard error for all writers, including copies of os.Stdout that
// packages made during initialization. Earlier output is not affected.
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
