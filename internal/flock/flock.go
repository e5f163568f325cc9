// Package flock keeps a file for one process at a time.
package flock

import "errors"

// ErrTaken says that another process has the file.
var ErrTaken = errors.New("another process has it")
