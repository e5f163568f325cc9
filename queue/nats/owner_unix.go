//go:build unix

package nats

import (
	"io/fs"
	"os"
	"syscall"
)

// owned reports whether a file belongs to this user.
func owned(about fs.FileInfo) bool {
	of, ok := about.Sys().(*syscall.Stat_t)
	return ok && int(of.Uid) == os.Geteuid()
}
