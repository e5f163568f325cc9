// Package ports finds ports of the Loopback interface for servers that are about to be
// started. It imports nothing of this module.
package ports

import (
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"strconv"
	"sync"
)

// Loopback is where servers listen, and nowhere else.
const Loopback = "127.0.0.1"

// Tries bounds the search for a free port. A server should be started on others no more often
// because its port was taken meanwhile.
const Tries = 50

// Ports hands out Loopback ports. The system gives ports of its ephemeral
// range to whoever connects anywhere, so that one of those may be taken at
// any moment; these lie outside. Make one with [New]. Safe for concurrent use.
type Ports struct {
	low, high int // the range, both included

	mu    sync.Mutex
	taken map[int]bool
}

// New returns Ports that have handed out none.
func New() *Ports {
	var p Ports
	text, _ := os.ReadFile("/proc/sys/net/ipv4/ip_local_port_range") // not there: not Linux
	p.low, p.high = portRange(string(text))
	p.taken = map[int]bool{}
	return &p
}

// portRange returns the ports to choose from, given the system's ephemeral
// range as Linux writes it; empty if unknown.
func portRange(ephemeral string) (low, high int) {
	const first, last, enough = 10000, 65535, 1000
	var from, to int
	if n, err := fmt.Sscan(ephemeral, &from, &to); n != 2 || err != nil {
		from, to = 32768, last // nearly everybody's lies in there
	}
	switch {
	case from-first >= enough:
		return first, from - 1
	case last-to >= enough:
		return to + 1, last
	}
	return first, last // somebody gave all ports away: take what is free
}

// Take returns a port that nobody listens on and that no other server of these
// has.
func (p *Ports) Take() (int, error) {
	for range Tries {
		port := p.low + rand.IntN(p.high-p.low+1)
		if p.reserve(port) {
			return port, nil
		}
	}
	return 0, fmt.Errorf("no free port on %s after %d tries between %d and %d: end some of the servers there", Loopback, Tries, p.low, p.high)
}

func (p *Ports) reserve(port int) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.taken[port] {
		return false
	}
	l, err := net.Listen("tcp", Address(port))
	if err != nil {
		return false
	}
	l.Close()
	p.taken[port] = true
	return true
}

// GiveBack lets others have the port.
func (p *Ports) GiveBack(port int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.taken, port)
}

// Address returns the host:port of a port.
func Address(port int) string { return net.JoinHostPort(Loopback, strconv.Itoa(port)) }
