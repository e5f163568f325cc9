//go:build unix

package stdio

import (
	"os"
	"syscall"
)

// Input returns a pipe as a file that Go's runtime polls, as it does with pipes that it made
// itself. A worker should read its jobs from Input of its standard input: a read that blocks in the
// operating system occupies the processor until the runtime notices, which takes up to ten
// milliseconds per job if GOMAXPROCS is 1. Input returns f itself if polling is not possible.
func Input(f *os.File) *os.File {
	// A duplicate descriptor, because f closes its own when it becomes garbage.
	fd, err := syscall.Dup(int(f.Fd()))
	if err != nil {
		return f
	}
	syscall.CloseOnExec(fd)
	if err := syscall.SetNonblock(fd, true); err != nil {
		syscall.Close(fd)
		return f
	}
	return os.NewFile(uintptr(fd), f.Name())
}
