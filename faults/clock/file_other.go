//go:build !linux

package clock

import (
	"errors"
	"time"
)

var errLinux = errors.New("clock: the shim is for Linux")

// File is the clock of processes on Linux. A File cannot be created on this system.
type File struct{}

// Create returns an error, because the shim works only on Linux.
func Create(string) (*File, error) { return nil, errLinux }

// Path returns an empty string.
func (*File) Path() string { return "" }

// Set returns an error.
func (*File) Set(time.Duration, float64) error { return errLinux }

// Loaded returns false.
func (*File) Loaded() bool { return false }

// Close does nothing.
func (*File) Close() error { return nil }
