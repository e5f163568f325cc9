//go:build unix

package pool

import (
	"os"
	"os/signal"
	"syscall"
)

// interrogate asks the process to say what it is doing and to end.
func interrogate(p *os.Process) { p.Signal(syscall.SIGQUIT) }

// watchQuit calls f when the process is interrogated.
func watchQuit(f func()) {
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGQUIT)
	go func() {
		<-signals
		f()
	}()
}
