// Package soak asks how often a lock fails, where scripts ask whether it can: clients use one
// lock for hours while random faults befall them, and what came of it is counted.
//
// A soak is many windows that know nothing of each other: scripts of their own, drawn from the
// plan's seed and their number. So each can be played alone, again, by others, at the same time,
// or on real servers, and memory doesn't grow with time. The package plays nothing: it writes
// scripts, counts histories, and adds up what was counted.
package soak

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/lockfault/lockfault/faults"
)

// A Plan says what clients do and what befalls them.
type Plan struct {
	// Clients is how many want the lock, at most [MostClients].
	Clients int
	// Think is how long one does something else between two rounds, on average; Hold is how long
	// its update takes: what is between acquire and release.
	Think, Hold time.Duration
	// TTL is the lease, Patience how long an acquire tries; 0 is a script's default.
	TTL, Patience time.Duration
	// Nodes is how many nodes the lock has, Replicas how many replicas each of them, and Lag by how
	// much what these get is late.
	Nodes, Replicas int
	Lag             time.Duration
	// Window is how long clients begin rounds in a window.
	Window time.Duration
	// Nemeses are what causes faults, each for itself.
	Nemeses []Nemesis
	// Seed decides all that is random.
	Seed uint64
}

// MostClients is how many clients a plan may have: there are as many names.
const MostClients = 26

// MostFaults is how many faults a window of a plan may have on average, so that its script is no
// larger than scripts may be.
const MostFaults = 5000

// Expected returns how many faults a window has on average.
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

// Script returns the script of the window of that number, from 0.
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
	at     time.Duration // since clients began; what was written has waited so far
	ends   []end         // of faults that last, in no order
	hurt   map[string]bool
}

// An end is what ends a fault.
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

// rounds returns what a client is to do for the rest of the window.
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

// play writes faults in the order of time, then ends what lasts and waits for everybody.
func (w *writer) play() {
	next := make([]time.Duration, len(w.plan.Nemeses)) // when each strikes again
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

// until lets time pass.
func (w *writer) until(at time.Duration) {
	if at = at.Truncate(time.Millisecond); at > w.at {
		w.line("wait %s", faults.Span{Abs: at - w.at})
		w.at = at
	}
}

// nextEnd returns which fault ends first, -1 if none lasts.
func (w *writer) nextEnd() int {
	first := -1
	for i, e := range w.ends {
		if first < 0 || e.at < w.ends[first].at {
			first = i
		}
	}
	return first
}

// end ends a fault, when it is due or the window is over.
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

// strike writes what a nemesis does, to somebody whom nothing befalls at the moment: if there is
// nobody, it does nothing.
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
	lines, after := n.kind.does(w, who, span)
	for _, line := range lines {
		w.line("%s", line)
	}
	if len(after) > 0 {
		w.hurt[who] = true
		w.ends = append(w.ends, end{w.at + span, who, after})
	}
}

// victims returns whom a kind may befall.
func (w *writer) victims(k *kind) (names []string) {
	if !k.server {
		return w.plan.Names()
	}
	for n := range max(1, w.plan.Nodes) {
		names = append(names, fmt.Sprintf("n%d", n+1))
	}
	return names
}
