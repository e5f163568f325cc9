package real

import (
	"slices"
	"sync"
	"time"
)

// lateness adds up by how much things were late, whose time had come, because
// the machine had something else to do: a script that is played too late is
// another script. For each of those who can be late it adds what came together
// within one memory, and leaves out what is next to nothing. The zero value is
// empty. Safe for concurrent use.
type lateness struct {
	mu    sync.Mutex
	notes map[string][]delay
	worst time.Duration
}

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
// of its pauses was the script's doing.
func (w *World) ClientLate(name string, due, happened time.Duration) {
	c := w.clients[name]
	if c == nil || slices.ContainsFunc(c.pauses, func(p pause) bool { return p.from < happened && (p.to == 0 || due < p.to) }) {
		return
	}
	w.note("client "+name, happened-due)
}

// Late returns by how much this world and its clients were late since Begin:
// the most that came together within one TTL.
func (w *World) Late() time.Duration {
	w.lateness.mu.Lock()
	defer w.lateness.mu.Unlock()
	return w.lateness.worst
}

// beat is how often the world looks whether it is late.
const beat = 10 * time.Millisecond

// beats until the world closes.
func (w *World) beats() {
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
