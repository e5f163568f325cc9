//go:build unix

package conformance

import "syscall"

// stop stops the process, or lets it go on.
func (p *process) stop(it bool) error {
	signal := syscall.SIGCONT
	if it {
		signal = syscall.SIGSTOP
	}
	return p.cmd.Process.Signal(signal)
}
