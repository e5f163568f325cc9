//go:build unix

package below

import (
	"io/fs"
	"os"
	"syscall"
)

// Owned reports whether a file belongs to this user.
func Owned(about fs.FileInfo) bool {
	of, ok := about.Sys().(*syscall.Stat_t)
	return ok && int(of.Uid) == os.Geteuid()
}

// linked reports whether a file has several names.
func linked(about fs.FileInfo) bool {
	of, ok := about.Sys().(*syscall.Stat_t)
	return ok && of.Nlink > 1
}
