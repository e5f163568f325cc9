//go:build !unix

package nats

import "io/fs"

func owned(fs.FileInfo) bool { return true }
