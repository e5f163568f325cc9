//go:build !unix

package child

import (
	"errors"
	"os/exec"
)

var ErrUnsupported = errors.New("child: this system can't stop a process: use the world sim, docker or external")

func Supported() error { return ErrUnsupported }

func isolate(*exec.Cmd)   {}
func suspend(int) error   { return ErrUnsupported }
func proceed(int) error   { return ErrUnsupported }
func destroy(int) error   { return ErrUnsupported }
func awaitStop(int) error { return ErrUnsupported }
func awaitEnd(int) bool   { return false }
