//go:build !linux

package atomicdir

import "os"

// exchange reports that this system cannot exchange two entries by one call.
func exchange(*os.File, string, *os.File, string) bool { return false }
