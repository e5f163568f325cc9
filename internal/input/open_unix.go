//go:build unix

package input

import "syscall"

// withoutWaiting makes the open of a pipe without a writer return at once.
const withoutWaiting = syscall.O_NONBLOCK
