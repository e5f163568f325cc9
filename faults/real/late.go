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
	why    string // what that was, for the most part
}

// pause is when a process was stopped, on the clock of [child.SinceBoot]; to is
// 0 while it is.
type pause struct{ from, to time.Duration }

type delay struct {
	at   time.Time
	by   time.Duration
	what string
}

func (l *lateness) note(who, what string, by, memory time.Duration) {
	if by <= child.Trifle {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Now()
	notes := l.notes[who]
	for len(notes) > 0 && now.Sub(notes[0].at) > memory {
		notes = notes[1:]
	}
	notes = append(notes, delay{now, by, what})
	if l.notes == nil {
		l.notes = map[string][]delay{}
	}
	l.notes[who] = notes
	var sum time.Duration
	most := notes[0]
	for _, d := range notes {
		sum += d.by
		if d.by > most.by {
			most = d
		}
	}
	if sum > l.worst {
		l.worst, l.why = sum, most.what
	}
}

func (l *lateness) forget() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.notes, l.worst, l.why = nil, 0, ""
}

// note notes that somebody was late with something. Safe for concurrent use.
func (w *World) note(who, what string, by time.Duration) { w.lateness.note(who, what, by, w.cfg.TTL) }

// ClientLate notes that a client's process was late: what was due at one time
// happened at another, on the clock of [child.SinceBoot]. What falls into one
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
	l.pauses[client] = append(l.pauses[client], pause{from: child.SinceBoot()})
}

func (l *lateness) resume(client string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if all := l.pauses[client]; len(all) > 0 && all[len(all)-1].to == 0 {
		all[len(all)-1].to = child.SinceBoot() + child.Trifle
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
// the most that came together within one TTL; and what had to be waited for, for
// the most part.
func (w *World) Late() (by time.Duration, what string) {
	w.lateness.mu.Lock()
	defer w.lateness.mu.Unlock()
	return w.lateness.worst, w.lateness.why
}
