//go:build unix && !linux

package stdio

import "syscall"

// dup2 makes descriptor to a copy of from.
func dup2(from, to int) error { return syscall.Dup2(from, to) }
