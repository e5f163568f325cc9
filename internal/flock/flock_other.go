//go:build !unix

package flock

import "os"

// Excludes reports whether [Take] keeps a file from other processes on this system.
const Excludes = false

// Take does nothing here: the file is not kept from others.
func Take(*os.File) error { return nil }
