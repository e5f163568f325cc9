//go:build !linux

package workerpool

import "os/exec"

// wakeOrphan does nothing here: a stopped worker whose parent has died ends
// when somebody continues it.
func wakeOrphan(*exec.Cmd) {}
