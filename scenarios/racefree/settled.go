// Package settled writes random scripts that leave nothing to chance: what they
// do lies apart by so much that two worlds which agree can't come out
// differently for want of a few hundredths of a lease. They are what the world
// of virtual time is compared with real servers by.
//
// A seed and a strategy come in, the text of a script goes out. The package
// imports scenarios only, whose parser says which lines make sense.
//
// # Why nothing is left to chance
//
// A lease ends one TTL after it began, so what happens at a moment can depend on
// what happened a TTL before. Steps are multiples of 0.3 TTLs apart: no two of
// them lie a TTL apart, or nearly so. Whatever else takes time is chosen so that
// it ends between the steps, also a TTL later: timeouts, delays, jumps of clocks.
// A watchdog renews a lease every third of it. For a strategy that has one, each
// step until the next rest has a time of its own within a third, a ninth from
// the next, and clocks jump by thirds. Operations are begun, and not waited for:
// how long they take changes no other step's time. After a few steps everything
// is mended, every client ends and is born again, and nothing is done until all
// leases are over.
package racefree

import (
	"fmt"
	"math/rand/v2"
	"strings"

	"github.com/lockfault/lockfault/scenarios"
)

// A Subject is a strategy to write scripts for.
type Subject struct {
	Name string
	// Nodes is how many nodes it needs.
	Nodes int
	// Replicas is how many replicas its nodes may have at the most.
	Replicas int
	// Watchdog says that it renews its leases, every third of one.
	Watchdog bool
}

// spans are the lengths of time that lie between the steps, in TTLs.
type spans struct {
	steps            int      // at the most, between two rests
	timeout, closing string   // of commands, and of links
	delays, lags     []string // of messages, and of replication
	back             []string // jumps of clocks
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

// Script writes a script for a strategy: the same seed, the same text. Its name
// is for error messages and the script's own. It expects nothing, since what
// comes of it is the question.
func Script(name string, seed uint64, of Subject) string {
	return write(name, fmt.Sprintf("Settled script %d of %s.", seed, of.Name), rand.NewPCG(seed, stream), of)
}

// Choose is Script, but the choices decide: each byte one, as long as there are any. A
// byte that is changed changes what it decided, and what follows from that.
func Choose(name string, choices []byte, of Subject) string {
	return write(name, "Settled script of "+of.Name+".", &tape{choices, rand.NewPCG(uint64(len(choices)), stream)}, of)
}

// stream tells these random numbers from others of the same seed.
const stream = 0x10c8fa017

// A tape is a source of random numbers that somebody has chosen, and of others behind
// them.
type tape struct {
	left   []byte
	behind rand.Source
}

// Uint64 implements [rand.Source]. Numbers below n are drawn from the bits at the top.
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

// A writer writes one script.
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

// add adds a line if a script may have it there, and reports whether it may.
func (w *writer) add(line string) bool {
	text := strings.Join(append(w.lines, line), "\n") + "\nexpect none\n"
	if _, err := scenarios.Parse(w.name+".txt", []byte(text)); err != nil {
		return false
	}
	w.lines = append(w.lines, line)
	return true
}

// epoch writes some steps and then a rest.
func (w *writer) epoch() {
	for i := range 2 + w.IntN(w.spans.steps-1) {
		if i > 0 {
			w.wait()
		}
		for range 1 + w.IntN(2) { // what has to precede an operation comes with it
			if !w.befall() {
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

// act has a client do something, unless it is dead.
func (w *writer) act() {
	c := w.pick(w.clients...)
	w.add(w.pick(
		"begin "+c+" try", "begin "+c+" try", "begin "+c+" try", "begin "+c+" release", "begin "+c+" release",
		"begin "+c+" extend", "begin "+c+" write",
	))
}

// befall has something happen, and reports whether it is of a kind that goes
// with an operation at the same moment.
func (w *writer) befall() (goesOn bool) {
	c, n := w.pick(w.clients...), fmt.Sprint("n", 1+w.IntN(w.of.Nodes))
	s := fmt.Sprintf("%s/%d", n, w.IntN(1+w.replicas))
	switch w.IntN(10) {
	case 0:
		return true // nothing
	case 1, 2: // orders to the gate
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
		w.add(w.pick(n+" crash", n+" restart", n+" restart empty", n+" pause", n+" resume", n+" flush", n+" evict", n+" script-flush"))
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

// rest mends everything and lets all leases end.
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
