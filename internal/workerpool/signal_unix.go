//go:build unix

package workerpool

import (
	"os"
	"os/signal"
	"syscall"
)

// parentsOwn are the signals that a terminal sends to the parent and its
// workers alike, and that are the parent's to act on.
var parentsOwn = []os.Signal{os.Interrupt, syscall.SIGHUP}

// wake continues the process if it was stopped: it hears nothing until then.
func wake(p *os.Process) { p.Signal(syscall.SIGCONT) }

// interrogate asks the process to say what it is doing and to end.
func interrogate(p *os.Process) {
	p.Signal(syscall.SIGQUIT)
	wake(p)
}

// OutlivePipe makes a write to a pipe without a reader fail with an error, on standard output and
// standard error too. By default such a write kills the process, which then cleans up nothing.
func OutlivePipe() { signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE) }

// watchQuit calls f when the process is interrogated.
func watchQuit(f func()) {
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGQUIT)
	go func() {
		<-signals
		f()
	}()
}
