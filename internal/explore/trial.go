package explore

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/lockfault/lockfault/checker"
	"github.com/lockfault/lockfault/faults"
	"github.com/lockfault/lockfault/internal/harness"
)

// A Trial is a script to be played.
type Trial struct {
	Script string
	// Mark is the line, from 1, where its last move begins; 0 if that is of no
	// interest.
	Mark int
	// Half is a line of it before which it is of interest how things stand; 0 for none.
	Half int
	// Moves is how many its path has, which goes on from another's, and Last says that none goes on from it;
	// Moves is 0 for one that has to be played from the beginning.
	Moves int
	Last  bool
}

// An Outcome is how a script ended.
type Outcome struct {
	// View is how things stand at its end.
	View harness.Snapshot
	// Anomalies are those that it shows, in the checker's order.
	Anomalies []checker.Anomaly
	// Unjudged says why anomalies of servers were not judged; empty if they were.
	Unjudged string
	// Print is a hash of its history, for a trial without a mark: that of a script that
	// is played twice is the same. Of a strategy that varies it shows the anomalies alone.
	Print string
	// Before is a hash of what happened before the mark, and Part what happened
	// from there on.
	Before string
	Part   Part
	// Half is how things stood in the midst of the part, for a trial that asks for it.
	Half *Half `json:",omitempty"`
	// Meta is what the history says about itself.
	Meta checker.Meta
	// Err says why there is none of this: the script, or the lock, was in error.
	Err string
	// Left says what another run left behind that was kept in the same house.
	Left string `json:",omitempty"`
}

// A Part is what a move adds to a history. Its times are those since the move
// began.
type Part struct {
	// Events are there without the steps: which lines they were is of no interest.
	Events []checker.Event
	// Steps says before which of the events the move's steps stand.
	Steps []int
	// Took is how much time went by.
	Took time.Duration
}

// A Half is how things stood after some of a part's steps.
type Half struct {
	View  harness.Snapshot
	Steps int           // how many
	Took  time.Duration // until then
}

// Play plays a trial with a cell that has its script, in virtual time: what a player does with
// each, in whatever process.
func Play(t *testing.T, cell harness.Cell, trial Trial) Outcome {
	outcome, views := harness.PlaySnapshots(t, cell, trial.Half)
	look := lookAt(outcome, views, trial, &historyCursor{})
	if look.Print != "" && cell.Strategy.HistoryVaries != "" {
		look.Print = fmt.Sprint(look.Anomalies)
	}
	return look
}

// A historyCursor is how far a history was looked at that goes on. The zero value is at its beginning.
type historyCursor struct {
	upto  int
	tally historyHash
}

// lookAt returns how a cell ended of which there are such views.
func lookAt(outcome harness.Outcome, views []harness.Snapshot, trial Trial, past *historyCursor) Outcome {
	mark, half := trial.Mark, trial.Half
	switch outcome.Status {
	case harness.Held, harness.Violated:
	case harness.NotApplicable:
		return Outcome{Err: "it doesn't apply: " + outcome.Reason}
	default:
		return Outcome{Err: outcome.Reason}
	}
	look := Outcome{View: views[len(views)-1], Anomalies: outcome.Verdict.Anomalies(), Meta: outcome.History.Meta}
	if doubt := outcome.Verdict.Unjudged; doubt != nil {
		look.Unjudged = doubt.Message
	}
	events := outcome.History.Events
	if mark == 0 {
		all, _ := strip(events)
		look.Print = digest(all, exactly)
	}
	at, began := 0, time.Duration(0)
	for i, e := range events {
		if e.Kind == checker.Step && e.Line >= mark {
			at, began = i, e.Time
			break
		}
	}
	for _, e := range events[past.upto:at] {
		if e.Kind == checker.Step {
			past.tally.begin()
		} else {
			past.tally.add(e)
		}
	}
	past.upto = at
	look.Before = past.tally.digest()
	look.Part.Events, look.Part.Steps = strip(events[at:])
	for i, e := range look.Part.Events {
		look.Part.Events[i] = since(began, e)
	}
	end := slices.IndexFunc(events, func(e checker.Event) bool { return e.Kind == checker.End })
	look.Part.Took = events[end].Time - began
	if half > 0 {
		look.Half = &Half{View: views[0]}
		for _, e := range events[at:end] {
			if e.Kind != checker.Step {
				continue
			}
			if look.Half.Took = e.Time - began; e.Line >= half {
				break
			}
			look.Half.Steps++
		}
	}
	return look
}

// same reports whether two looks at the same trial show the same.
func (l *Outcome) same(other *Outcome) bool {
	return l.Before == other.Before && reflect.DeepEqual(l.View, other.View) &&
		digest(l.Part.Events, exactly) == digest(other.Part.Events, exactly)
}

// strip returns the events up to the end, without the steps, and where these stood.
func strip(events []checker.Event) (list []checker.Event, steps []int) {
	for _, e := range events {
		switch e.Kind {
		case checker.End:
			return list, steps
		case checker.Step:
			steps = append(steps, len(list))
		default:
			list = append(list, e)
		}
	}
	return list, steps
}

// dates returns the times in an event that may not be said, which are 0 then.
func dates(e *checker.Event) [2]*time.Duration {
	return [...]*time.Duration{&e.Until, &e.Expires}
}

// message reports whether an event is about a message. Such a one always says when it was
// sent, which may be at 0.
func message(e checker.Event) bool {
	switch e.Kind {
	case checker.Request, checker.Reply, checker.Push, checker.Held, checker.Passed, checker.Dropped:
		return true
	}
	return false
}

// origin is the date at which a part begins, 0 being none.
const origin time.Duration = math.MinInt64

// since returns an event with times since another began.
func since(began time.Duration, e checker.Event) checker.Event {
	return moved(e, -began, func(date time.Duration) time.Duration { return cmp.Or(date-began, origin) })
}

// after undoes since, for another begin.
func after(began time.Duration, e checker.Event) checker.Event {
	return moved(e, began, func(date time.Duration) time.Duration {
		if date == origin {
			return began
		}
		return date + began
	})
}

// shift returns an event of a part in one that began so much before.
func shift(e checker.Event, before time.Duration) checker.Event {
	return moved(e, before, func(date time.Duration) time.Duration {
		if date == origin {
			date = 0
		}
		return cmp.Or(date+before, origin)
	})
}

// moved returns an event whose times are later, and its dates something else, where it has any.
func moved(e checker.Event, by time.Duration, date func(time.Duration) time.Duration) checker.Event {
	e.Time += by
	if message(e) {
		e.Sent += by
	}
	for _, d := range dates(&e) {
		if *d != 0 {
			*d = date(*d)
		}
	}
	return e
}

// exactly leaves times as they are.
func exactly(t time.Duration) time.Duration { return t }

// digest returns a hash of events, with times as they are or to the instant.
func digest(events []checker.Event, to func(time.Duration) time.Duration) string {
	sum := sha256.New()
	var line []byte
	for _, e := range events {
		timed(&e, to)
		line = e.AppendJSON(line[:0])
		sum.Write(line)
	}
	return hex.EncodeToString(sum.Sum(nil)[:16])
}

// timed gives an event other times, and no number.
func timed(e *checker.Event, to func(time.Duration) time.Duration) {
	e.Index = 0
	e.Time, e.Sent = to(e.Time), to(e.Sent)
	for _, date := range dates(e) {
		*date = to(*date)
	}
}

// arrange puts events in order of time, those at the same time by whose they are.
func arrange(events []checker.Event) {
	slices.SortStableFunc(events, func(a, b checker.Event) int {
		return cmp.Or(cmp.Compare(a.Time, b.Time), strings.Compare(ownerName(a), ownerName(b)))
	})
}

// ownerName returns the client whose event one is, else the node, or nothing. Clients' names are
// before nodes'.
func ownerName(e checker.Event) string { return cmp.Or(e.Client, e.Node) }

// A path is a path of a search: a move, and the path to where it began, which is nil for the
// first, which has no lines.
type path struct {
	before *path
	depth  int // how many moves there are before it
	lines  []string
	// What the move added to the history, once that is known: in several parts where
	// each client and node is known by itself. All have the same steps and took as long.
	parts []*pathSegment
	foot  *hashState // nil until it is asked for
}

// A pathSegment is a part that is kept.
type pathSegment struct {
	Part
	relevant []checker.Event // the events that tell; nil until somebody asks
	mute     bool            // it can't show an anomaly that had not shown before
}

// adds says what a move adds to the history.
func (t *path) adds(parts ...*pathSegment) {
	t.parts = parts
	for _, p := range parts {
		if p.relevant == nil {
			p.relevant = p.relevantEvents()
			p.mute = faults.Instant(p.Took) == 0 && !slices.ContainsFunc(p.relevant, func(e checker.Event) bool {
				return e.Kind != checker.Request && e.Kind != checker.Reply && e.Kind != checker.Held
			})
		}
	}
}

// mute reports whether the move can't show an anomaly that had not shown before.
func (t *path) mute() bool {
	return !slices.ContainsFunc(t.parts, func(p *pathSegment) bool { return !p.mute })
}

// relevant returns what tells of what the move added. There are too many different ones that are put together
// to keep them.
func (t *path) relevant() []checker.Event {
	if len(t.parts) == 1 {
		return t.parts[0].relevant
	}
	return t.part().relevantEvents()
}

// part returns what the move added to the history.
func (t *path) part() *Part {
	if len(t.parts) == 1 {
		return &t.parts[0].Part
	}
	whole := together(t.parts)
	return &whole
}

// progress returns the events that tell, and those that say when requests set out.
func (p *Part) relevantEvents() []checker.Event {
	tells := make([]checker.Event, 0, len(p.Events))
	for _, e := range p.Events {
		if e.AffectsVerdict() || heldRequest(e) {
			tells = append(tells, e)
		}
	}
	return slices.Clip(tells)
}

// moves returns the moves of a path, the first one first.
func (t *path) moves() []*path {
	n := 0
	for at := t; at != nil; at = at.before {
		n++
	}
	list := make([]*path, n)
	for at := t; at != nil; at = at.before {
		n--
		list[n] = at
	}
	return list
}

// script returns the path as lines of a script, and where the last move's begin, from 0.
func (t *path) script() (lines []string, last int) {
	for _, move := range t.moves() {
		last = len(lines)
		lines = append(lines, move.lines...)
	}
	return lines, last
}

// path returns the lines of each move.
func (t *path) path() [][]string {
	var path [][]string
	for _, move := range t.moves() {
		if len(move.lines) > 0 {
			path = append(path, move.lines)
		}
	}
	return path
}

// history puts together what happened on a path, as far as its moves are known. Nothing is
// played for it: calls are numbered anew, times are moved to where they belong.
func (t *path) history() []checker.Event {
	var w historyBuilder
	for _, move := range t.moves() {
		if move.parts == nil {
			break
		}
		part := move.part()
		w.add(part.Events, part.Took)
	}
	return w.events
}

// A historyBuilder puts histories together. The zero value has none.
type historyBuilder struct {
	events []checker.Event
	now    time.Duration
	calls  int
	open   [26]int // the call that each client is in
	held   []checker.Event
	short  bool // leaves out what doesn't tell
}

func heldRequest(e checker.Event) bool {
	return e.Kind == checker.Held && e.Direction == faults.Before.Direction()
}

// setOut says when a request set out that may have been held: a move that lets one through was
// perhaps played behind others, which took a few microseconds more or less, and whether it was
// before a call or in it matters.
func (w *historyBuilder) setOut(e *checker.Event) {
	i := slices.IndexFunc(w.held, func(h checker.Event) bool {
		return h.Client == e.Client && h.Node == e.Node && h.Command == e.Command && (h.Sent-e.Sent).Abs() < time.Millisecond/2
	})
	if i >= 0 {
		e.Sent = w.held[i].Sent
		w.held = slices.Delete(w.held, i, i+1)
	}
}

func (w *historyBuilder) add(events []checker.Event, took time.Duration) {
	for i := range events {
		e := after(w.now, events[i])
		switch {
		case heldRequest(e):
			w.held = append(w.held, e)
			if w.short {
				continue
			}
		case e.Kind == checker.Request:
			w.setOut(&e)
		}
		e.Index = len(w.events)
		if e.Call != 0 {
			call := &w.open[e.Client[0]-'A']
			if e.Kind == checker.Invoke {
				w.calls++
				*call = w.calls
			}
			e.Call = *call
		}
		w.events = append(w.events, e)
	}
	w.now += took
}

// telling puts together what tells of a history, in the same memory each time.
func (w *historyBuilder) telling(t *path, meta checker.Meta) checker.History {
	*w = historyBuilder{events: w.events[:0], held: w.held[:0], short: true}
	for _, move := range t.moves() {
		w.add(move.relevant(), move.parts[0].Took)
	}
	end := checker.Event{Index: len(w.events), Time: w.now, Kind: checker.End}
	return checker.History{Meta: meta, Events: append(w.events, end)}
}
