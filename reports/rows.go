package reports

import (
	"bufio"
	"bytes"
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/lockfault/lockfault/checker"
	"github.com/lockfault/lockfault/internal/printable"
	"github.com/lockfault/lockfault/reports/diagram"
)

// A Narrative holds the story of a cell as data, for displays other than [Story]. Its texts are
// safe to print: control characters are replaced, and overlong texts are clipped.
type Narrative struct {
	// Heading names the cell: the strategy and the scenario, then the lease, the seed and the
	// world.
	Heading string
	// Lanes holds the names of the clients, then of the servers.
	Lanes []string
	Rows  []Row
	// Verdict holds the lines of the cell's verdict, with the events that prove it.
	Verdict []string
}

// A Row is one line of a story: an event, and which of the four truths it changed.
type Row struct {
	// Number is the index of the event in the history, or a range such as 12-13 for several events.
	// Number is empty for the end of a validity, which is not an event.
	Number string
	// At is the time since the start of the run, and Seconds is the same time as text.
	At      time.Duration
	Seconds string
	// What describes what happened on the wire, in the script or in a client.
	What string
	// Belief names the clients that believe from now on that they hold the lock. Server is the new
	// state of the key, Result is what an operation returned, and Damage is what the protected
	// resource did with a write. Each is empty if the row did not change it, except that Belief is
	// a vertical line while a client still believes.
	Belief, Server, Result, Damage string
	// Events holds the positions in the history of the events that the row shows.
	Events []int
	// Lanes holds the positions in [Narrative.Lanes] of the clients and servers that the row
	// concerns. Only [Narrate] sets it.
	Lanes []int
	// Now holds the four truths after the row.
	Now Truths

	believed bool   // whether a client believes after the row
	of       string // client of a row without an event
}

// holdsOn is the Belief of a row between two changes, while a client believes.
const holdsOn = "│"

// Believes reports whether the row changes which clients believe.
func (r Row) Believes() bool { return r.Belief != "" && r.Belief != holdsOn }

// Headings returns the headings of the columns.
func Headings() Row {
	return Row{Number: "#", Seconds: "seconds", What: "what happens",
		Belief: "belief", Server: "server", Result: "result", Damage: "damage"}
}

// Truths holds the four truths (belief, server, result, damage) at one time of a story.
type Truths struct {
	// Believers holds the clients that believe that they hold the lock, in the order in which their
	// holds began. If there is more than 1, their holds overlap.
	Believers []string
	// Keys holds, for each server whose key changed, the key's owner and its expiry.
	Keys []string
	// Results holds, for each client, the result of its last operation.
	Results []string
	// Writes holds what the protected resource did with each write so far.
	Writes []string
}

// Overlap reports whether more than 1 client believes.
func (t Truths) Overlap() bool { return len(t.Believers) > 1 }

// A saying is the latest text about a client or server.
type saying struct{ of, text string }

// A ledger holds the latest texts about clients or servers, ordered by name.
type ledger []saying

// say replaces the text about a client or server. say ignores a new name if the ledger is full.
func (l *ledger) say(of, says string) {
	at, found := l.find(of)
	if !found {
		if len(*l) == mostSayings {
			return
		}
		*l = slices.Insert(*l, at, saying{of: of})
	}
	(*l)[at].text = shortLine(says)
}

// forget removes the text about a client or server.
func (l *ledger) forget(of string) {
	if at, found := l.find(of); found {
		*l = slices.Delete(*l, at, at+1)
	}
}

// mostSayings is the largest number of clients or servers in a ledger, since a reader cannot follow
// more at once.
const mostSayings = 100

// find returns the position of a name, or where it belongs. Shorter names come first, so n10 comes
// after n2.
func (l ledger) find(of string) (int, bool) {
	return slices.BinarySearchFunc(l, of, func(a saying, of string) int {
		return cmp.Or(cmp.Compare(len(a.of), len(of)), cmp.Compare(a.of, of))
	})
}

// list returns the texts.
func (l ledger) list() []string { return each(l, func(a saying) string { return a.text }) }

// truths returns the four truths at the current point of the story. Rows share the lists that did
// not change between them.
func (s *story) truths() Truths {
	now := s.now
	now.Writes = slices.Clip(now.Writes)
	for _, v := range s.believers {
		now.Believers = append(now.Believers, shown(v.Client))
	}
	return now
}

// verdictLimit is the largest number of characters of a verdict that is shown. Longer verdicts
// contain the stack traces of a panic.
const verdictLimit = 20_000

// Narrate returns the story of a cell, restricted to the view, as [Story] writes it.
func Narrate(cell Cell, h checker.History, v View) Narrative {
	s := newStory(h)
	s.view = v
	s.name(cell)
	var t Narrative
	t.Heading = shortLine(text(func(b *bufio.Writer) { s.heading(b, cell) }))
	p := &diagramBuilder{story: s, cell: cell}
	p.lay()
	for _, lane := range p.lanes {
		if lane.Kind != diagram.Resource { // the resource is the last lane
			t.Lanes = append(t.Lanes, shown(lane.Name))
		}
	}
	if len(h.Events) > 0 {
		t.Rows = s.rows()
		if v.Around != nil {
			t.Rows = v.Around.cut(t.Rows)
		}
	}
	for i := range t.Rows {
		t.Rows[i].Lanes = p.about(t.Rows[i])
		t.Rows[i] = printedRow(t.Rows[i])
	}
	verdict := strings.ReplaceAll(text(func(b *bufio.Writer) { s.verdict(b, cell) }), "\t", "    ")
	t.Verdict = strings.Split(clipTo(printable.Text(verdict), verdictLimit), "\n")
	return t
}

// text returns the output of write, without surrounding space.
func text(write func(*bufio.Writer)) string {
	var text bytes.Buffer
	b := bufio.NewWriter(&text)
	write(b)
	b.Flush() // writing to a bytes.Buffer cannot fail
	return strings.TrimSpace(text.String())
}

// about returns the lanes of the clients and servers that a row concerns, in ascending order.
func (p *diagramBuilder) about(r Row) []int {
	var lanes []int
	add := func(lane int) {
		if lane >= 0 && !slices.Contains(lanes, lane) {
			lanes = append(lanes, lane)
		}
	}
	if r.of != "" {
		add(p.client(r.of))
	}
	for _, i := range r.Events {
		if e := p.h.Events[i]; e.Client != "" {
			add(p.client(e.Client))
		}
		switch e := p.h.Events[i]; {
		case e.Kind == checker.Fault:
			for _, lane := range p.subjects(e) {
				add(lane)
			}
		case e.Node != "":
			add(p.server(i))
		}
	}
	slices.Sort(lanes)
	return lanes
}

// printedRow returns the row with texts that are safe to print.
func printedRow(r Row) Row {
	r.Number, r.What = shown(r.Number), shortLine(r.What)
	for _, text := range []*string{&r.Belief, &r.Server, &r.Result, &r.Damage} {
		*text = shortLine(*text)
	}
	return r
}
