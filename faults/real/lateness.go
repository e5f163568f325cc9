package real

import (
	"slices"
	"sync"
	"time"

	"github.com/lockfault/lockfault/faults"
	"github.com/lockfault/lockfault/internal/proc"
)

// Lateness is the delay that a busy machine caused to a world and its clients. A script that is
// played too late is a different script.
type Lateness struct {
	By     time.Duration // the largest sum of delays of one participant
	What   string        // the cause of the largest of these delays
	Within time.Duration // the window over which delays are added up
}

// lateness adds up the delays of actions that were due, without delays up to proc.LagThreshold. It
// adds them up over one lease, and over each absolute time in the script as long as the script
// depends on it. It is safe for concurrent use after begin.
type lateness struct {
	mu     sync.Mutex
	leases memory
	counts []*memory
	pauses map[string][]pause // of clients
}

// memory adds up delays over one window.
type memory struct {
	Lateness
	node  string    // the node whose replicas lag by this time; empty for other windows
	until time.Time // when the script stops depending on the window; zero while it depends on it
	notes map[string][]delay
}

// pause is the time during which a process was stopped, on the clock of [proc.SinceBoot]. to is 0
// while the process is stopped.
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

// begin discards all delays, and adds up over leases from now on.
func (l *lateness) begin(lease time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.leases, l.counts = memory{Lateness: Lateness{Within: lease}}, nil
}

// count adds a window for an absolute time in a fault: the script must take its next steps within
// that time.
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

// cease ends the windows of a node's replicas: what the replicas lack by now they will never get.
// took is the duration of the action that caused this. The replicas had that time too, even if the
// action always takes that long, so it counts as a delay of the script.
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

// note records a delay of a participant. It is safe for concurrent use.
func (w *World) note(who, what string, by time.Duration) { w.lateness.note(who, what, by) }

// ClientLate records that a client's process was late: an action was due at one time and happened
// at another, on the clock of [proc.SinceBoot]. A delay that overlaps a pause of the client is not
// recorded, because the script caused it. ClientLate is safe for concurrent use.
func (w *World) ClientLate(name string, due, happened time.Duration) {
	if !w.lateness.paused(name, due, happened) {
		w.note("client "+name, "the process of "+name+" to go on", happened-due)
	}
}

// pause records that a client's process was stopped now. resume records that it continues,
// proc.LagThreshold after the command.
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

// paused reports whether a client's process was stopped at any moment between two times.
func (l *lateness) paused(client string, from, to time.Duration) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.ContainsFunc(l.pauses[client], func(p pause) bool { return p.from < to && (p.to == 0 || from < p.to) })
}

// Late returns the delays of this world and its clients since Begin: over one lease, and over each
// absolute time in the script.
func (w *World) Late() (lease Lateness, counts []Lateness) {
	w.lateness.mu.Lock()
	defer w.lateness.mu.Unlock()
	for _, m := range w.lateness.counts {
		counts = append(counts, m.Lateness)
	}
	return w.lateness.leases.Lateness, counts
}
