package atomicdir

import (
	"os"

	"golang.org/x/sys/unix"
)

// exchange exchanges two entries of open directories, and reports whether it succeeded.
func exchange(dirA *os.File, a string, dirB *os.File, b string) bool {
	return unix.Renameat2(int(dirA.Fd()), a, int(dirB.Fd()), b, unix.RENAME_EXCHANGE) == nil
}
