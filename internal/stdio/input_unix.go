//go:build unix

package stdio

import (
	"os"
	"syscall"
)

// Input returns a pipe as a file that Go's runtime watches, as it does with
// pipes that it made itself. A worker should read its jobs from Input of
// its standard input: a read that blocks in the operating system keeps the
// processor until the runtime notices, which takes up to ten milliseconds a
// job where GOMAXPROCS is 1. It returns f itself if that is not possible.
func Input(f *os.File) *os.File {
	// A descriptor of its own: f closes its one when nobody refers to it.
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
