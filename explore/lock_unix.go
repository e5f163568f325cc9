//go:build unix

package explore

import (
	"errors"
	"os"
	"syscall"
)

// lock takes the file for this process as long as it is open; the error is errLocked if
// another one has it.
func lock(f *os.File) error {
	err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return errLocked
	}
	return err
}
