//go:build unix && !linux

package proc

import "os/exec"

func dieWithParent(*exec.Cmd) {}

func keepDescriptors() {}

// awaitStop does not wait: a signal between processes of one user takes effect within a scheduling
// delay.
func awaitStop(int) error { return nil }

// awaitEnd does not wait; exec.Cmd.Wait does.
func awaitEnd(int) bool { return false }
