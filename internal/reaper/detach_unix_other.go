//go:build unix && !linux

package reaper

import "syscall"

// attributes gives the process a group of its own: a signal that a terminal sends to this process
// must not end the watchman first.
func attributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }
