package stdio

import "syscall"

// dup2 makes descriptor to be what from is. Not all kinds of Linux have a dup2.
func dup2(from, to int) error { return syscall.Dup3(from, to, 0) }
