//go:build unix

package handover

import (
	"os"
	"syscall"
)

func replace(file string) (int, error) {
	return 0, &os.PathError{Op: "exec", Path: file, Err: syscall.Exec(file, os.Args, os.Environ())}
}
