//go:build !linux

package atomicdir

import "os"

// exchange returns false: this system cannot exchange two entries in one call.
func exchange(*os.File, string, *os.File, string) bool { return false }
