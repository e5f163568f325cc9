//go:build !linux

package workerpool

import "os/exec"

// wakeOrphan does nothing on this system: a stopped worker whose parent died ends when another
// process continues it.
func wakeOrphan(*exec.Cmd) {}
