//go:build !unix

package flock

import "os"

// Take does nothing here: the file is not kept from others.
func Take(*os.File) error { return nil }
