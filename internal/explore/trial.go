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
	"github.com/lockfault/lockfault/internal/leases"
)

// A Trial is a script to play.
type Trial struct {
	Script string
	// Mark is the line, from 1, where the last transition of the path begins; 0 if the caller needs
	// no [Outcome.Part] for it.
	Mark int
	// Half is a line of the last transition before which a snapshot is taken for [Outcome.Half]; 0
	// for none.
	Half int
	// Moves is the number of transitions on the path, which continues the path of another trial.
	// Last reports that no other trial continues this path. Moves is 0 for a trial that must be
	// played from the beginning.
	Moves int
	Last  bool
}

// An Outcome is the result of playing a script.
type Outcome struct {
	// View is the snapshot at the end of the script.
	View harness.Snapshot
	// Anomalies are the anomalies that the history shows, in the checker's order.
	Anomalies []checker.Anomaly
	// Unjudged is the reason why server-side anomalies were not judged; empty if they were.
	Unjudged string
	// Print is a hash of the history, set for a trial without a Mark: playing the same script again
	// gives the same hash. For a strategy whose history varies, Print lists only the anomalies.
	Print string
	// Findings judges the anomalies, set for a trial without a Mark.
	Findings []leases.Finding `json:",omitempty"`
	// Before is a hash of the events before the Mark, and Part holds the events from the Mark on.
	Before string
	Part   Part
	// Half is the snapshot within the Part, for a trial with a Half.
	Half *Half `json:",omitempty"`
	// Meta is the metadata of the history.
	Meta checker.Meta
	// Err is the reason why the other fields are empty: the script or the lock failed.
	Err string
	// Left describes what another run, kept in the same [RunCache], failed to clean up.
	Left string `json:",omitempty"`
	// Leak is a goroutine that outlived its client, in this run or another of the same [RunCache]: see
	// [harness.Outcome].
	Leak string `json:",omitempty"`
}

// A Part is the contribution of one transition to a history. Its times are relative to the
// beginning of the transition.
type Part struct {
	// Events excludes the step events: which lines of the script they belong to is irrelevant.
	Events []checker.Event
	// Steps holds, for each step of the transition, the index in Events before which the step
	// stands.
	Steps []int
	// Took is the duration of the transition, in simulated time.
	Took time.Duration
}

// A Half is a snapshot taken after some of the steps of a Part.
type Half struct {
	View  harness.Snapshot
	Steps int           // number of steps before the snapshot
	Took  time.Duration // duration until the snapshot
}

// Play plays a trial in virtual time, using a cell that has the trial's script. A [Player] calls
// Play for each trial, in a process of its choice.
func Play(t *testing.T, cell harness.Cell, trial Trial) Outcome {
	outcome, views := harness.PlaySnapshots(t, cell, trial.Half)
	look := lookAt(outcome, views, trial, &historyCursor{})
	if look.Print != "" {
		look.Findings = leases.Judge(outcome.History, leases.LockOf(cell.Strategy))
	}
	if look.Print != "" && cell.Strategy.HistoryVaries != "" {
		look.Print = fmt.Sprint(look.Anomalies)
	}
	return look
}

// finding returns what is found of an anomaly, or nil.
func (l *Outcome) finding(a checker.Anomaly) *leases.Finding {
	if i := slices.IndexFunc(l.Findings, func(f leases.Finding) bool { return f.Anomaly == a }); i >= 0 {
		return &l.Findings[i]
	}
	return nil
}

// A historyCursor holds the position up to which a growing history has been hashed. The zero value
// is the beginning of the history.
type historyCursor struct {
	upto  int
	tally historyHash
}

// lookAt returns the outcome of a played cell. views are the snapshots taken, the one at the end
// last; past moves forward to the trial's mark.
func lookAt(outcome harness.Outcome, views []harness.Snapshot, trial Trial, past *historyCursor) Outcome {
	mark, half := trial.Mark, trial.Half
	switch outcome.Status {
	case harness.Held, harness.Violated:
	case harness.NotApplicable:
		return Outcome{Err: "it doesn't apply: " + outcome.Reason}
	default:
		return Outcome{Err: outcome.Reason}
	}
	look := Outcome{View: views[len(views)-1], Anomalies: outcome.Verdict.Anomalies(), Meta: outcome.History.Meta, Leak: outcome.Leak}
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

// same reports whether two outcomes of the same trial are equal.
func (l *Outcome) same(other *Outcome) bool {
	return l.Before == other.Before && reflect.DeepEqual(l.View, other.View) &&
		digest(l.Part.Events, exactly) == digest(other.Part.Events, exactly)
}

// strip returns the events before the End event without the step events, and the positions of the
// steps.
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

// dates returns the optional times of an event; an optional time that is not set is 0.
func dates(e *checker.Event) [2]*time.Duration {
	return [...]*time.Duration{&e.Until, &e.Expires}
}

// message reports whether an event is about a message. Such an event always has a send time, which
// may be 0.
func message(e checker.Event) bool {
	switch e.Kind {
	case checker.Request, checker.Reply, checker.Push, checker.Held, checker.Passed, checker.Dropped:
		return true
	}
	return false
}

// origin stands for an optional time equal to the beginning of a Part, because 0 means that the
// time is not set.
const origin time.Duration = math.MinInt64

// since returns an event with its times made relative to the time began.
func since(began time.Duration, e checker.Event) checker.Event {
	return moved(e, -began, func(date time.Duration) time.Duration { return cmp.Or(date-began, origin) })
}

// after reverses since, for another time began.
func after(began time.Duration, e checker.Event) checker.Event {
	return moved(e, began, func(date time.Duration) time.Duration {
		if date == origin {
			return began
		}
		return date + began
	})
}

// shift returns an event of a Part with its times made relative to a beginning that is earlier by
// before.
func shift(e checker.Event, before time.Duration) checker.Event {
	return moved(e, before, func(date time.Duration) time.Duration {
		if date == origin {
			date = 0
		}
		return cmp.Or(date+before, origin)
	})
}

// moved returns an event whose times are later by the given duration, and whose optional times,
// where set, are mapped by date.
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

// exactly prepares an event for comparison with one of another run in every detail.
func exactly(e *checker.Event) { e.Index = 0 }

// roughly prepares an event for comparison with one of a run in which the same happened in another order:
// see [faults.Instant] and [faults.Untimed].
func roughly(e *checker.Event) {
	e.Index = 0
	e.Time, e.Sent = faults.Instant(e.Time), faults.Instant(e.Sent)
	for _, date := range dates(e) {
		*date = faults.Instant(*date)
	}
	e.Error = faults.Untimed(e.Error)
}

// digest returns a hash of events that were prepared for comparison by exactly or roughly.
func digest(events []checker.Event, prepare func(*checker.Event)) string {
	sum := sha256.New()
	var line []byte
	for _, e := range events {
		prepare(&e)
		line = e.AppendJSON(line[:0])
		sum.Write(line)
	}
	return hex.EncodeToString(sum.Sum(nil)[:16])
}

// arrange sorts events by time, and events at the same time by their owner's name.
func arrange(events []checker.Event) {
	slices.SortStableFunc(events, func(a, b checker.Event) int {
		return cmp.Or(cmp.Compare(a.Time, b.Time), strings.Compare(ownerName(a), ownerName(b)))
	})
}

// ownerName returns the event's client, else its node, else "". Client names sort before node
// names.
func ownerName(e checker.Event) string { return cmp.Or(e.Client, e.Node) }

// A path is a path of a search: its last transition, and the path before that transition. The path
// of the root node has no lines and a nil before.
type path struct {
	before *path
	depth  int // number of transitions; 0 for the root
	lines  []string
	// The contribution of the transition to the history, once known. There are several parts if the
	// effect on each client and node is known separately; all parts have the same steps and
	// duration.
	parts []*pathSegment
	foot  *hashState // computed on demand; nil until then
}

// A pathSegment is a Part that is kept in memory.
type pathSegment struct {
	Part
	relevant []checker.Event // the events that affect a verdict; nil until first used
	mute     bool            // the part cannot show an anomaly that was not shown before
}

// adds sets the contribution of the transition to the history.
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

// mute reports whether the transition cannot show an anomaly that was not shown before.
func (t *path) mute() bool {
	return !slices.ContainsFunc(t.parts, func(p *pathSegment) bool { return !p.mute })
}

// relevant returns the events of the transition that affect a verdict. The result for several parts
// is not cached: there are too many distinct combinations.
func (t *path) relevant() []checker.Event {
	if len(t.parts) == 1 {
		return t.parts[0].relevant
	}
	return t.part().relevantEvents()
}

// part returns the contribution of the transition to the history.
func (t *path) part() *Part {
	if len(t.parts) == 1 {
		return &t.parts[0].Part
	}
	whole := together(t.parts)
	return &whole
}

// relevantEvents returns the events that affect a verdict, and the events that record when held
// requests were sent.
func (p *Part) relevantEvents() []checker.Event {
	tells := make([]checker.Event, 0, len(p.Events))
	for _, e := range p.Events {
		if e.AffectsVerdict() || heldRequest(e) {
			tells = append(tells, e)
		}
	}
	return slices.Clip(tells)
}

// moves returns the transitions of a path, from the first to the last.
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

// script returns the path as lines of a script, and the index of the first line of the last
// transition.
func (t *path) script() (lines []string, last int) {
	for _, move := range t.moves() {
		last = len(lines)
		lines = append(lines, move.lines...)
	}
	return lines, last
}

// path returns the lines of each transition; the root, which has no lines, is left out.
func (t *path) path() [][]string {
	var path [][]string
	for _, move := range t.moves() {
		if len(move.lines) > 0 {
			path = append(path, move.lines)
		}
	}
	return path
}

// history assembles the history of a path from the known effects of its transitions. Nothing is
// played: calls are renumbered and times are shifted to their place in the path.
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

// whole returns the history of a path, to its end.
func (t *path) whole(meta checker.Meta) checker.History {
	var w historyBuilder
	for _, move := range t.moves() {
		if move.parts != nil {
			part := move.part()
			w.add(part.Events, part.Took)
		}
	}
	return checker.History{Meta: meta, Events: append(w.events, checker.Event{Index: len(w.events), Time: w.now, Kind: checker.End})}
}

// A historyBuilder assembles a history from Parts. The zero value is empty and ready for use.
type historyBuilder struct {
	events []checker.Event
	now    time.Duration
	calls  int
	open   [26]int // the current call of each client
	held   []checker.Event
	short  bool // leaves out events that do not affect a verdict
}

func heldRequest(e checker.Event) bool {
	return e.Kind == checker.Held && e.Direction == faults.Before.Direction()
}

// setOut sets the send time of a request that may have been held to the time in its Held event. The
// transition that passed the request may have been played after other transitions, which shifts the
// send time by a few microseconds, and the verdict depends on whether the request was sent before
// or during a call.
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

// telling assembles the verdict-relevant history of a path. The result shares the builder's memory
// and is valid until the next call.
func (w *historyBuilder) telling(t *path, meta checker.Meta) checker.History {
	*w = historyBuilder{events: w.events[:0], held: w.held[:0], short: true}
	for _, move := range t.moves() {
		w.add(move.relevant(), move.parts[0].Took)
	}
	end := checker.Event{Index: len(w.events), Time: w.now, Kind: checker.End}
	return checker.History{Meta: meta, Events: append(w.events, end)}
}
