package process

import (
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"strconv"
	"sync"
)

// loopback is where servers listen, and nowhere else.
const loopback = "127.0.0.1"

// portTries bounds the search for a free port, and how often a server is
// started on another one because its port was taken meanwhile.
const portTries = 50

// ports hands out loopback ports. The system gives ports of its ephemeral
// range to whoever connects anywhere, so that one of those may be taken at
// any moment; these lie outside. Safe for concurrent use.
type ports struct {
	low, high int // the range, both included

	mu    sync.Mutex
	taken map[int]bool
}

func newPorts() *ports {
	var p ports
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

// take returns a port that nobody listens on and that no other server of this
// host has.
func (p *ports) take() (int, error) {
	for range portTries {
		port := p.low + rand.IntN(p.high-p.low+1)
		if p.reserve(port) {
			return port, nil
		}
	}
	return 0, fmt.Errorf("no free port on %s after %d tries between %d and %d: end some of the servers there", loopback, portTries, p.low, p.high)
}

func (p *ports) reserve(port int) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.taken[port] {
		return false
	}
	l, err := net.Listen("tcp", address(port))
	if err != nil {
		return false
	}
	l.Close()
	p.taken[port] = true
	return true
}

// giveBack lets others of this host have the port.
func (p *ports) giveBack(port int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.taken, port)
}

func address(port int) string { return net.JoinHostPort(loopback, strconv.Itoa(port)) }
