package real

import (
	"slices"
	"sync"
	"time"

	"github.com/lockfault/lockfault/internal/child"
)

// lateness adds up by how much things were late, whose time had come, because
// the machine had something else to do: a script that is played too late is
// another script. For each of those who can be late it adds what came together
// within one memory, and leaves out what is next to nothing. The zero value is
// empty. Safe for concurrent use.
type lateness struct {
	mu     sync.Mutex
	notes  map[string][]delay
	pauses map[string][]pause // of clients
	worst  time.Duration
}

// pause is when a process was stopped, on the clock of [child.SinceBoot]; to is
// 0 while it is.
type pause struct{ from, to time.Duration }

type delay struct {
	at time.Time
	by time.Duration
}

// trifle is next to nothing.
const trifle = 2 * time.Millisecond

func (l *lateness) note(who string, by, memory time.Duration) {
	if by <= trifle {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Now()
	notes := l.notes[who]
	for len(notes) > 0 && now.Sub(notes[0].at) > memory {
		notes = notes[1:]
	}
	notes = append(notes, delay{now, by})
	if l.notes == nil {
		l.notes = map[string][]delay{}
	}
	l.notes[who] = notes
	var sum time.Duration
	for _, d := range notes {
		sum += d.by
	}
	l.worst = max(l.worst, sum)
}

func (l *lateness) forget() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.notes, l.worst = nil, 0
}

// note notes that the world, or one of its servers, was late.
func (w *World) note(who string, by time.Duration) { w.lateness.note(who, by, w.cfg.TTL) }

// ClientLate notes that a client's process was late: what was due at one time
// happened at another, on the clock of [child.SinceBoot]. What falls into one
// of its pauses was the script's doing. Safe for concurrent use.
func (w *World) ClientLate(name string, due, happened time.Duration) {
	if !w.lateness.paused(name, due, happened) {
		w.note("client "+name, happened-due)
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
	l.pauses[client] = append(l.pauses[client], pause{from: child.SinceBoot()})
}

func (l *lateness) resume(client string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if all := l.pauses[client]; len(all) > 0 {
		all[len(all)-1].to = child.SinceBoot() + trifle
	}
}

// paused reports whether a client's process was stopped at any time between the
// two.
func (l *lateness) paused(client string, from, to time.Duration) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.ContainsFunc(l.pauses[client], func(p pause) bool { return p.from < to && (p.to == 0 || from < p.to) })
}

// Late returns by how much this world and its clients were late since Begin:
// the most that came together within one TTL.
func (w *World) Late() time.Duration {
	w.lateness.mu.Lock()
	defer w.lateness.mu.Unlock()
	return w.lateness.worst
}

// beats until the world closes.
func (w *World) beats() {
	beat := min(max(w.cfg.TTL/100, time.Millisecond), 10*time.Millisecond) // a fraction of what the lease bears
	ticker := time.NewTimer(beat)
	defer ticker.Stop()
	for {
		due := time.Now().Add(beat)
		ticker.Reset(beat)
		select {
		case <-w.over:
			return
		case <-ticker.C:
			w.note("world", time.Since(due))
		}
	}
}
