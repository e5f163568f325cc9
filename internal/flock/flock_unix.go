//go:build unix

package flock

import (
	"errors"
	"os"
	"syscall"
)

// Excludes reports whether [Take] keeps a file from other processes on this system.
const Excludes = true

// Take takes the file for this process as long as it is open; the error is [ErrTaken] if
// another one has it. It doesn't block.
func Take(f *os.File) error {
	err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return ErrTaken
	}
	return err
}
