//go:build !linux

package pool

import "os/exec"

// dieWithParent does nothing here: a worker ends when its standard input does.
func dieWithParent(*exec.Cmd) {}

func lockThread() (unlock func()) { return func() {} }
