// Package soak measures how often a lock fails, where scenarios show whether it can fail. In a
// soak, clients use one lock for hours under random faults, and the results are counted.
//
// A soak consists of many independent windows. Each window is a script drawn from the plan's seed
// and the window's number, so each window can be replayed alone, run in parallel or on real
// servers, and memory does not grow with time. A [Plan] comes in, scripts go out; histories come
// in, [Counts] and their [Sum] go out. The package plays no scripts.
package soak

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/lockfault/lockfault/faults"
)

// A Plan describes the clients and the faults of a soak.
type Plan struct {
	// Window is the time in which clients begin rounds in a window.
	Window time.Duration `json:"window_ns"`
	// Clients is the number of clients, at most [MostClients].
	Clients int `json:"clients"`
	// Think is the mean pause of a client between two rounds. Hold is the duration of a client's
	// update, between acquire and release.
	Think time.Duration `json:"think_ns"`
	Hold  time.Duration `json:"hold_ns"`
	// TTL is the lease, and Patience the longest duration of an acquire; 0 means a script's
	// default.
	TTL      time.Duration `json:"ttl_ns"`
	Patience time.Duration `json:"patience_ns,omitzero"`
	// Nodes is the number of nodes, Replicas the number of replicas per node, and Lag the
	// replication lag.
	Nodes    int           `json:"nodes,omitzero"`
	Replicas int           `json:"replicas"`
	Lag      time.Duration `json:"lag_ns"`
	// Seed determines all random choices.
	Seed uint64 `json:"seed"`
	// Nemeses inject faults, independently of each other.
	Nemeses []Nemesis `json:"nemeses"`
}

// MostClients is the largest number of clients of a plan: one for each name from A to Z.
const MostClients = 26

// MostFaults is the largest mean number of faults in a window, so that a window's script does not
// exceed the size limit of scripts.
const MostFaults = 5000

// Expected returns the mean number of faults in a window.
func (p Plan) Expected() float64 {
	n := 0.0
	for _, nemesis := range p.Nemeses {
		n += float64(p.Window) / float64(nemesis.Every)
	}
	return n
}

// Names returns the names of the clients.
func (p Plan) Names() (names []string) {
	for i := range p.Clients {
		names = append(names, string(rune('A'+i)))
	}
	return names
}

// Script returns the script of the window with the given number, from 0.
func (p Plan) Script(window int) string {
	w := writer{plan: p, random: rand.New(rand.NewPCG(p.Seed, uint64(window))), hurt: map[string]bool{}}
	w.head(window)
	w.play()
	return w.text.String()
}

// A writer writes the script of a window.
type writer struct {
	plan   Plan
	random *rand.Rand
	text   strings.Builder
	at     time.Duration // time since the clients began, as waited for so far
	ends   []end         // ends of current faults, in no order
	hurt   map[string]bool
}

// An end is the end of a fault.
type end struct {
	at    time.Duration
	of    string // the client or node
	lines []string
}

func (w *writer) line(format string, args ...any) { fmt.Fprintf(&w.text, format+"\n", args...) }

func (w *writer) head(window int) {
	p := w.plan
	w.line("# Window %d of a soak with seed %d: clients use one lock, and random faults befall them.\n", window, p.Seed)
	if p.TTL > 0 {
		w.line("ttl %s", faults.Span{Abs: p.TTL})
	}
	w.line("clients %s", strings.Join(p.Names(), " "))
	if p.Nodes > 1 {
		w.line("nodes %d", p.Nodes)
	}
	if p.Replicas > 0 {
		w.line("replicas %d", p.Replicas)
	}
	if p.Patience > 0 {
		w.line("patience %s", faults.Span{Abs: p.Patience})
	}
	w.line("")
	if p.Lag > 0 {
		for n := range max(1, p.Nodes) {
			w.line("n%d replication delay %s", n+1, faults.Span{Abs: p.Lag})
		}
	}
	w.line("begin %s %s", strings.Join(p.Names(), " "), w.rounds())
}

// rounds returns the rest of the line that lets a client run rounds for the rest of the window.
func (w *writer) rounds() string {
	text := "rounds for " + faults.Span{Abs: w.plan.Window - w.at}.String()
	if w.plan.Hold > 0 {
		text += " update " + faults.Span{Abs: w.plan.Hold}.String()
	}
	if w.plan.Think > 0 {
		text += " think " + faults.Span{Abs: w.plan.Think}.String()
	}
	return text
}

// play writes faults in the order of time, then ends the current faults and waits for all clients.
func (w *writer) play() {
	next := make([]time.Duration, len(w.plan.Nemeses)) // when each nemesis injects its next fault
	for i, n := range w.plan.Nemeses {
		next[i] = n.gap(w.random)
	}
	for {
		strike := -1
		for i, at := range next {
			if strike < 0 || at < next[strike] {
				strike = i
			}
		}
		over := w.nextEnd()
		switch {
		case over >= 0 && w.ends[over].at < w.plan.Window && (strike < 0 || w.ends[over].at <= next[strike]):
			w.end(over)
		case strike >= 0 && next[strike] < w.plan.Window:
			w.until(next[strike])
			w.strike(w.plan.Nemeses[strike])
			next[strike] += w.plan.Nemeses[strike].gap(w.random)
		default:
			w.until(w.plan.Window)
			for len(w.ends) > 0 {
				w.end(w.nextEnd())
			}
			w.line("await %s done\n\nexpect none", strings.Join(w.plan.Names(), " "))
			return
		}
	}
}

// until writes a wait until the given time.
func (w *writer) until(at time.Duration) {
	if at = at.Truncate(time.Millisecond); at > w.at {
		w.line("wait %s", faults.Span{Abs: at - w.at})
		w.at = at
	}
}

// nextEnd returns the index of the fault that ends first, or -1 if there is none.
func (w *writer) nextEnd() int {
	first := -1
	for i, e := range w.ends {
		if first < 0 || e.at < w.ends[first].at {
			first = i
		}
	}
	return first
}

// end ends a fault at the time at which it is due, or at the end of the window.
func (w *writer) end(i int) {
	e := w.ends[i]
	w.ends = slices.Delete(w.ends, i, i+1)
	w.until(min(e.at, w.plan.Window))
	delete(w.hurt, e.of)
	for _, line := range e.lines {
		if line == resumeMark {
			if line = "begin " + e.of + " " + w.rounds(); w.at >= w.plan.Window {
				continue
			}
		}
		w.line("%s", line)
	}
}

// strike writes a fault on a random client or node that has no fault at the moment; without such a
// client or node strike does nothing.
func (w *writer) strike(n Nemesis) {
	var well []string
	for _, name := range w.victims(n.kind) {
		if !w.hurt[name] {
			well = append(well, name)
		}
	}
	if len(well) == 0 {
		return
	}
	who := well[w.random.IntN(len(well))]
	span := n.span(w.random)
	lines, after := n.kind.lines(w, who, span)
	for _, line := range lines {
		w.line("%s", line)
	}
	if len(after) > 0 {
		w.hurt[who] = true
		w.ends = append(w.ends, end{w.at + span, who, after})
	}
}

// victims returns the clients or nodes that a kind may affect.
func (w *writer) victims(k *kind) (names []string) {
	if !k.server() {
		return w.plan.Names()
	}
	for n := range max(1, w.plan.Nodes) {
		names = append(names, fmt.Sprintf("n%d", n+1))
	}
	return names
}
