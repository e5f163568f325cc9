// Package racefree generates random scripts without races: the times of their steps are so far
// apart that small differences in timing cannot change the result. The scripts serve to compare the
// world of virtual time with real servers.
//
// The inputs are a seed and a strategy; the output is the text of a script. The package imports
// scenarios, whose parser decides which lines are valid, and faults for their table.
//
// # Why the scripts have no races
//
// A lease ends one TTL after it began, so an event can depend on an event one TTL earlier. Steps
// are multiples of 0.3 TTLs apart: no two steps are one TTL apart, or nearly so. All other
// durations (timeouts, delays, clock jumps) are chosen so that they end between the steps, also one
// TTL later. A watchdog renews a lease every third of it. For a strategy with a watchdog, each step
// until the next rest has its own phase within a third, a ninth from the next, and clocks jump by
// thirds. Operations are begun without waiting for their returns, so their durations do not change
// the times of other steps. After a few steps all faults are undone, every client crashes and
// restarts, and nothing happens until all leases have ended.
package racefree

import (
	"fmt"
	"math/rand/v2"
	"strings"

	"github.com/lockfault/lockfault/faults"
	"github.com/lockfault/lockfault/scenarios"
)

// Subject describes the strategy of a script.
type Subject struct {
	Name string
	// Nodes is the number of nodes.
	Nodes int
	// Replicas is the maximum number of replicas of each node.
	Replicas int
	// Watchdog reports whether the strategy renews its lease every third of the lease.
	Watchdog bool
}

// spans holds the durations of a script, in TTLs.
type spans struct {
	steps            int      // maximum number of steps between two rests
	timeout, closing string   // of commands, and of links
	delays, lags     []string // of messages, and of replication
	back             []string // backward clock jumps
}

func (s Subject) spans() spans {
	if s.Watchdog {
		return spans{steps: 3, timeout: "0.0556ttl", closing: "0.1667ttl",
			delays: []string{"0.005ttl", "0.0556ttl", "0.3889ttl", "1.3889ttl"}, lags: []string{"0.01ttl", "10ttl"},
			back: []string{"-0.3333ttl", "-0.6667ttl"}}
	}
	return spans{steps: 6, timeout: "0.04ttl", closing: "0.2ttl",
		delays: []string{"0.005ttl", "0.05ttl", "0.35ttl", "1.25ttl"}, lags: []string{"0.02ttl", "0.2ttl", "2ttl"},
		back: []string{"-0.35ttl", "-0.65ttl"}}
}

// Script generates a script for a strategy. The same seed gives the same text. The name is for
// error messages. The script expects no anomalies, because the caller compares the results.
func Script(name string, seed uint64, of Subject) string {
	return write(name, fmt.Sprintf("Settled script %d of %s.", seed, of.Name), rand.NewPCG(seed, stream), of)
}

// Choose is like Script, but each byte of choices determines one random choice; after the last
// byte, further choices are random. A changed byte changes its choice and the consequences of that
// choice.
func Choose(name string, choices []byte, of Subject) string {
	return write(name, "Settled script of "+of.Name+".", &tape{choices, rand.NewPCG(uint64(len(choices)), stream)}, of)
}

// stream separates these random numbers from other random numbers with the same seed.
const stream = 0x10c8fa017

// tape is a random source that returns the caller's choices first and random numbers after them.
type tape struct {
	left   []byte
	behind rand.Source
}

// Uint64 implements [rand.Source]. The byte fills all bits, because numbers below n are drawn from
// the top bits.
func (t *tape) Uint64() uint64 {
	if len(t.left) == 0 {
		return t.behind.Uint64()
	}
	b := t.left[0]
	t.left = t.left[1:]
	return uint64(b) * 0x0101010101010101
}

func write(name, title string, source rand.Source, of Subject) string {
	w := &writer{Rand: rand.New(source), name: name, of: of, clients: []string{"A", "B"}, spans: of.spans(), split: map[string]bool{}}
	if w.IntN(4) == 0 {
		w.clients = append(w.clients, "C")
	}
	if of.Replicas > 0 {
		w.replicas = w.IntN(of.Replicas + 1)
	}
	w.lines = []string{
		"# " + title, "",
		"ttl 1s", "clients " + strings.Join(w.clients, " "), fmt.Sprint("nodes ", of.Nodes), fmt.Sprint("replicas ", w.replicas),
		"for " + of.Name, "patience 2ttl", "read-timeout " + w.spans.timeout, "",
	}
	for range 1 + w.IntN(2) {
		w.epoch()
	}
	return strings.Join(append(w.lines, "expect none"), "\n") + "\n"
}

// writer generates one script.
type writer struct {
	*rand.Rand
	name     string
	of       Subject
	clients  []string
	replicas int
	spans    spans
	split    map[string]bool
	lines    []string
}

func (w *writer) pick(words ...string) string { return words[w.IntN(len(words))] }

// add adds a line if the script is valid with it, and reports whether it is.
func (w *writer) add(line string) bool {
	text := strings.Join(append(w.lines, line), "\n") + "\nexpect none\n"
	if _, err := scenarios.Parse(w.name+".txt", []byte(text)); err != nil {
		return false
	}
	w.lines = append(w.lines, line)
	return true
}

// epoch generates some steps followed by a rest.
func (w *writer) epoch() {
	for i := range 2 + w.IntN(w.spans.steps-1) {
		if i > 0 {
			w.wait()
		}
		for range 1 + w.IntN(2) { // faults that precede an operation are at the same time as the operation
			if !w.fault() {
				break
			}
		}
		w.act()
	}
	w.wait()
	w.rest()
}

// wait lets time pass until the next step.
func (w *writer) wait() {
	span := 0.3 * float64(1+w.IntN(4))
	if w.of.Watchdog {
		span = float64(1+w.IntN(3))/3 + 1./9
	}
	w.lines = append(w.lines, fmt.Sprintf("wait %.4gttl", span))
}

// act lets a client call an operation, unless it is crashed.
func (w *writer) act() {
	c := w.pick(w.clients...)
	w.add(w.pick(
		"begin "+c+" try", "begin "+c+" try", "begin "+c+" try", "begin "+c+" release", "begin "+c+" release",
		"begin "+c+" extend", "begin "+c+" write",
	))
}

// fault generates a fault. fault reports whether the fault may occur at the same time as an
// operation.
func (w *writer) fault() (goesOn bool) {
	c, n := w.pick(w.clients...), fmt.Sprint("n", 1+w.IntN(w.of.Nodes))
	s := fmt.Sprintf("%s/%d", n, w.IntN(1+w.replicas))
	switch w.IntN(10) {
	case 0:
		return true // no fault
	case 1, 2: // gate commands
		messages := w.pick(c+" before any", c+" after any", c+" before EVAL", c+" after SET EVAL", c+" before writing", c+" after taking", c+" after freeing", "before any", c+" messages")
		if w.IntN(3) == 0 {
			return w.add(w.pick("clear", "clear "+c, "pass "+c, "pass "+c+" once"))
		}
		return w.add(w.pick("hold", "drop", "reset")+" "+messages+w.pick(" times 1", " times 1", "")) || true
	case 3: // delays that end before the next slot
		return w.add(fmt.Sprintf("delay %s %s any by %s times 1", c, w.pick("before", "after"), w.pick(w.spans.delays...))) || true
	case 4: // links
		return w.add(w.pick(
			"latency "+c+" "+n+" 4ms jitter 3ms", "latency 0s", "bandwidth "+c+" "+n+" 20KB/ttl", "bandwidth unlimited",
			"partition "+c+" from "+n, "partition "+c, "timeout "+c+" from "+n+" after "+w.spans.closing, "heal", "heal "+c,
		)) || true
	case 5: // clients
		w.add(w.pick(c+" pause", c+" pause", c+" resume", c+" resume", c+" crash", c+" restart", c+" clock +1.3333ttl", c+" clock "+w.pick(w.spans.back...)))
	case 6: // nodes
		var lines []string
		for _, d := range faults.Definitions() {
			for _, args := range d.RaceFree {
				lines = append(lines, strings.TrimRight(n+" "+d.Word+" "+args, " "))
			}
		}
		w.add(w.pick(lines...))
	case 7: // clocks
		w.add(w.pick(n, s) + " clock " + w.pick(append(w.spans.back, "+1.3333ttl")...))
	case 8: // servers and roles
		if line := w.pick(n+" split "+c, n+" join"); w.replicas > 0 && w.IntN(3) == 0 {
			if split := strings.Contains(line, "split"); (split || w.split[n]) && w.add(line) {
				w.split[n] = split
			}
			break
		}
		w.add(w.pick(n+" failover", n+" failover", s+" crash", s+" restart", s+" restart empty", s+" pause", s+" resume"))
	default: // replication
		w.add(n + " replication " + w.pick("stop", "stop", "start", "delay "+w.pick(w.spans.lags...), "delay 0.01ttl jitter 0.005ttl", "bandwidth 20KB/ttl", "timeout "+w.spans.closing, "reset"))
	}
	return false
}

// rest undoes all faults and waits until all leases have ended.
func (w *writer) rest() {
	for _, line := range []string{"heal", "clear", "latency 0s", "bandwidth unlimited"} {
		w.add(line)
	}
	for i := range w.of.Nodes {
		n := fmt.Sprint("n", i+1)
		w.add(n + " replication start")
		if w.split[n] {
			w.lines = append(w.lines, n+" join")
			w.split[n] = false
		}
		for k := range 1 + w.replicas {
			s := fmt.Sprintf("%s/%d", n, k)
			w.add(s + " resume")
			w.add(s + " restart")
			w.add(s + " full off")
		}
	}
	for _, c := range w.clients {
		w.add("pass " + c)
		w.add(c + " resume")
	}
	w.wait()
	for _, c := range w.clients {
		w.add(c + " crash")
		w.add(c + " restart")
	}
	w.lines = append(w.lines, "wait 2.8ttl", "")
}
