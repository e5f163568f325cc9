//go:build !linux

package clock

import (
	"errors"
	"time"
)

var errLinux = errors.New("clock: the shim is for Linux")

// A File can't be made here.
type File struct{}

// Create fails here.
func Create(string) (*File, error) { return nil, errLinux }

// Path is empty.
func (*File) Path() string { return "" }

// Set fails.
func (*File) Set(time.Duration, float64) error { return errLinux }

// Loaded returns false.
func (*File) Loaded() bool { return false }

// Close does nothing.
func (*File) Close() error { return nil }
