//go:build !unix

package process

import (
	"errors"
	"os/exec"
)

var errUnsupported = errors.New("process: this system can't stop a process: use the world sim, docker or external")

func supported() error { return errUnsupported }

func isolate(*exec.Cmd)        {}
func suspend(int) error        { return errUnsupported }
func proceed(int) error        { return errUnsupported }
func destroy(int) error        { return errUnsupported }
func awaitStop(int) error      { return errUnsupported }
func awaitEnd(int) bool        { return false }
func keepDescriptors()         {}
func newGuard() (guard, error) { return nil, errUnsupported }
