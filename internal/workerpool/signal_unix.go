//go:build unix

package workerpool

import (
	"os"
	"os/signal"
	"syscall"
)

// parentsOwn are the signals that a terminal sends to the parent and its workers alike, and that
// only the parent acts on.
var parentsOwn = []os.Signal{os.Interrupt, syscall.SIGHUP}

// wake continues the process if it is stopped; a stopped process receives no other signals.
func wake(p *os.Process) { p.Signal(syscall.SIGCONT) }

// interrogate asks the process to print its stacks and to end.
func interrogate(p *os.Process) {
	p.Signal(syscall.SIGQUIT)
	wake(p)
}

// OutlivePipe makes a write to a pipe without a reader fail with an error, on standard output and
// standard error too. By default such a write kills the process, which then cleans up nothing.
func OutlivePipe() { signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE) }

// watchQuit calls f when the process receives SIGQUIT.
func watchQuit(f func()) {
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGQUIT)
	go func() {
		<-signals
		f()
	}()
}
