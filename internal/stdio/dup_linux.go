package stdio

import "syscall"

// dup2 makes descriptor to a copy of from. Some architectures of Linux have no dup2, so it uses
// dup3.
func dup2(from, to int) error { return syscall.Dup3(from, to, 0) }
