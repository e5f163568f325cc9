//go:build unix

package real

import "syscall"

func readOnce(fd uintptr, p []byte) (int, error) { return syscall.Read(int(fd), p) }
