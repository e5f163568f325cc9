package replace

import "golang.org/x/sys/unix"

// exchange lets two entries change their names at one instant, and reports
// whether it could.
func exchange(a, b string) bool {
	return unix.Renameat2(unix.AT_FDCWD, a, unix.AT_FDCWD, b, unix.RENAME_EXCHANGE) == nil
}
