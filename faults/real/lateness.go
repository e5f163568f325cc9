package real

import (
	"slices"
	"sync"
	"time"

	"github.com/lockfault/lockfault/faults"
	"github.com/lockfault/lockfault/internal/proc"
)

// Lateness is by how much a world and its clients were late, because the machine had
// something else to do: a script that is played too late is another script.
type Lateness struct {
	By     time.Duration // the most that came together for one of those who can be late
	What   string        // what had to be waited for, for the most part
	Within time.Duration // within so long it came together
}

// lateness adds up by how much things were late, whose time had come, and leaves out
// what is next to nothing: over one lease, and over each time that the script tells
// in absolute terms, as long as it counts on that. Safe for concurrent use once made.
type lateness struct {
	mu     sync.Mutex
	leases memory
	counts []*memory
	pauses map[string][]pause // of clients
}

// memory is for how long lateness is added up.
type memory struct {
	Lateness
	node  string    // of the replicas that are that far behind; empty for other things
	until time.Time // when the script stops counting on it; zero while it does
	notes map[string][]delay
}

// pause is when a process was stopped, on the clock of [proc.SinceBoot]; to is
// 0 while it is.
type pause struct{ from, to time.Duration }

type delay struct {
	at   time.Time
	by   time.Duration
	what string
}

func (l *lateness) note(who, what string, by time.Duration) {
	if by <= proc.LagThreshold {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	d := delay{time.Now(), by, what}
	l.leases.add(who, d)
	for _, m := range l.counts {
		m.add(who, d)
	}
}

func (m *memory) add(who string, d delay) {
	if !m.until.IsZero() && d.at.Add(-d.by).After(m.until) {
		return
	}
	notes := m.notes[who]
	for len(notes) > 0 && d.at.Sub(notes[0].at) > m.Within {
		notes = notes[1:]
	}
	notes = append(notes, d)
	if m.notes == nil {
		m.notes = map[string][]delay{}
	}
	m.notes[who] = notes
	var sum time.Duration
	most := notes[0]
	for _, d := range notes {
		sum += d.by
		if d.by > most.by {
			most = d
		}
	}
	if sum > m.By {
		m.By, m.What = sum, most.what
	}
}

// begin forgets what was, and adds up over leases from now on.
func (l *lateness) begin(lease time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.leases, l.counts = memory{Lateness: Lateness{Within: lease}}, nil
}

// count has lateness added up over a time that the script tells in absolute terms,
// for what it does next has to be done within that.
func (l *lateness) count(f faults.Fault) {
	m := &memory{}
	switch f := f.(type) {
	case faults.Replication:
		m.node, m.Within = f.Node, f.Delay.Abs
	case faults.Delay:
		m.Within = f.By.Abs
	}
	if m.Within > 0 {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.counts = append(l.counts, m)
	}
}

// cease says that what a node's replicas have not by now they never will, and how long what sees to that was under way: that was their time, too, even where it
// takes no less.
func (l *lateness) cease(node, what string, took time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Now()
	for _, m := range l.counts {
		if m.node != node || !m.until.IsZero() {
			continue
		}
		if took > proc.LagThreshold {
			m.add("script", delay{now, took, what})
		}
		m.until = now
	}
}

// note notes that somebody was late with something. Safe for concurrent use.
func (w *World) note(who, what string, by time.Duration) { w.lateness.note(who, what, by) }

// ClientLate notes that a client's process was late: what was due at one time
// happened at another, on the clock of [proc.SinceBoot]. What falls into one
// of its pauses was the script's doing. Safe for concurrent use.
func (w *World) ClientLate(name string, due, happened time.Duration) {
	if !w.lateness.paused(name, due, happened) {
		w.note("client "+name, "the process of "+name+" to go on", happened-due)
	}
}

// pause notes that a client's process was stopped now, and resume that it goes
// on: a moment after it was told to.
func (l *lateness) pause(client string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.pauses == nil {
		l.pauses = map[string][]pause{}
	}
	l.pauses[client] = append(l.pauses[client], pause{from: proc.SinceBoot()})
}

func (l *lateness) resume(client string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if all := l.pauses[client]; len(all) > 0 && all[len(all)-1].to == 0 {
		all[len(all)-1].to = proc.SinceBoot() + proc.LagThreshold
	}
}

// paused reports whether a client's process was stopped at any time between the
// two.
func (l *lateness) paused(client string, from, to time.Duration) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.ContainsFunc(l.pauses[client], func(p pause) bool { return p.from < to && (p.to == 0 || from < p.to) })
}

// Late returns by how much this world and its clients were late since Begin: over one
// lease, and over each time that the script told in absolute terms.
func (w *World) Late() (lease Lateness, counts []Lateness) {
	w.lateness.mu.Lock()
	defer w.lateness.mu.Unlock()
	for _, m := range w.lateness.counts {
		counts = append(counts, m.Lateness)
	}
	return w.lateness.leases.Lateness, counts
}
