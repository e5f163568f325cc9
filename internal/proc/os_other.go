//go:build !unix

package proc

import (
	"errors"
	"os/exec"
)

var errUnsupported = errors.New("proc: this system can't stop a process: use the world sim, docker or external")

// Supported returns nil if processes can be stopped on this system, and otherwise an error with an
// alternative.
func Supported() error { return errUnsupported }

func isolate(*exec.Cmd)             {}
func group(int) int                 { return 0 }
func suspend(int) error             { return errUnsupported }
func proceed(int) error             { return errUnsupported }
func destroy(int) error             { return errUnsupported }
func destroyOne(int) error          { return errUnsupported }
func ask(int) error                 { return errUnsupported }
func awaitStop(int) error           { return errUnsupported }
func awaitEnd(int) bool             { return false }
func keepDescriptors()              {}
func newGroupGuard() (guard, error) { return nil, errUnsupported }
