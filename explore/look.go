package explore

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"math"
	"time"

	"github.com/lockfault/lockfault/checker"
	"github.com/lockfault/lockfault/harness"
)

// A Trial is a script to be played.
type Trial struct {
	Script string
	// Mark is the line, from 1, where its last move begins.
	Mark int
}

// A Look is how a script ended.
type Look struct {
	// View is how things stand at its end.
	View harness.View
	// Anomalies are those that it shows, in the checker's order.
	Anomalies []checker.Anomaly
	// Unjudged says why anomalies of servers were not judged; empty if they were.
	Unjudged string
	// Print is a hash of its history: that of a script that is played twice is the
	// same.
	Print string
	// Before is a hash of what happened before the mark, and Part what happened
	// from there on.
	Before string
	Part   Part
	// Meta is what the history says about itself.
	Meta checker.Meta
	// Err says why there is none of this: the script, or the lock, was in error.
	Err string
}

// A Part is what a move adds to a history. Its times are those since the move
// began, and steps are not in it, for which lines they were is of no interest.
type Part struct {
	Events []checker.Event
	// Took is how much time went by.
	Took time.Duration
}

// LookAt returns how a cell ended, for a trial with that mark.
func LookAt(outcome harness.Outcome, view harness.View, mark int) Look {
	look := Look{View: view, Anomalies: outcome.Verdict.Anomalies(), Meta: outcome.History.Meta}
	if doubt := outcome.Verdict.Unjudged; doubt != nil {
		look.Unjudged = doubt.Says
	}
	events := outcome.History.Events
	look.Print = digest(events, time.Nanosecond)
	at, began := 0, time.Duration(0)
	for i, e := range events {
		if e.Kind == checker.Step && e.Line >= mark {
			at, began = i, e.Time
			break
		}
	}
	look.Before = digest(events[:at], resolution)
	for _, e := range events[at:] {
		look.Part.Took = e.Time - began
		if e.Kind == checker.End {
			break
		}
		if e.Kind != checker.Step {
			look.Part.Events = append(look.Part.Events, shift(e, -began))
		}
	}
	return look
}

// shift returns an event that much later. Dates that are not said stay so, others don't
// become like them.
func shift(e checker.Event, by time.Duration) checker.Event {
	e.Time += by
	for _, date := range [...]*time.Duration{&e.Sent, &e.Until, &e.Expires} {
		switch *date {
		case 0:
		case -by:
			*date = origin
		case origin:
			*date = by
		default:
			*date += by
		}
	}
	return e
}

// origin is the date at which a part begins.
const origin time.Duration = math.MinInt64

// resolution is what times of a state are known to. Each move takes a microsecond or
// two, which are of no account.
const resolution = time.Millisecond

// digest returns a hash of what happened, but for where the script was, and with times
// to a resolution.
func digest(events []checker.Event, to time.Duration) string {
	sum := sha256.New()
	encoder := json.NewEncoder(sum)
	for _, e := range events {
		if e.Kind == checker.Step || e.Kind == checker.End {
			continue
		}
		e.Index = 0
		for _, t := range [...]*time.Duration{&e.Time, &e.Sent, &e.Until, &e.Expires} {
			*t = t.Round(to)
		}
		_ = encoder.Encode(e) // a hash takes everything
	}
	return hex.EncodeToString(sum.Sum(nil)[:16])
}

// A trail is a path of a search: a move, and the path to where it began. The path that
// has no moves is nil.
type trail struct {
	before *trail
	lines  []string
	part   *Part // what the move added to the history, once that is known
}

// moves returns the moves of a path, the first one first.
func (t *trail) moves() []*trail {
	n := 0
	for at := t; at != nil; at = at.before {
		n++
	}
	list := make([]*trail, n)
	for at := t; at != nil; at = at.before {
		n--
		list[n] = at
	}
	return list
}

// lines returns the path as lines of a script, and where the last move's begin, from 0.
func (t *trail) script() (lines []string, last int) {
	for _, move := range t.moves() {
		last = len(lines)
		lines = append(lines, move.lines...)
	}
	return lines, last
}

// history puts together what happened on a path, as far as its moves are known.
// Nothing is played for it: calls are numbered anew, times are moved to where they belong.
func (t *trail) history(meta checker.Meta) checker.History {
	moves := t.moves()
	size := 1
	for _, move := range moves {
		if move.part != nil {
			size += len(move.part.Events)
		}
	}
	events := make([]checker.Event, 0, size)
	var now time.Duration
	calls, open := 0, [26]int{}
	for _, move := range moves {
		if move.part == nil {
			break
		}
		for i := range move.part.Events {
			e := shift(move.part.Events[i], now)
			e.Index = len(events)
			if e.Call != 0 {
				call := &open[e.Client[0]-'A']
				if e.Kind == checker.Invoke {
					calls++
					*call = calls
				}
				e.Call = *call
			}
			events = append(events, e)
		}
		now += move.part.Took
	}
	events = append(events, checker.Event{Index: len(events), Time: now, Kind: checker.End})
	return checker.History{Meta: meta, Events: events}
}
