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

// A Narrative is the story of a cell as data, for whoever shows it otherwise than [Story]
// does. Nothing in its texts can do more than be read: what would move a cursor is
// replaced, and what is too long for anybody to read is clipped.
type Narrative struct {
	// Heading says which cell it is: the strategy and the scenario, then the lease,
	// the seed and the world.
	Heading string
	// Lanes are the names of the clients, then of the servers.
	Lanes []string
	Rows  []Row
	// Verdict is what the cell came to, with the events that prove it, in lines.
	Verdict []string
}

// A Row is one line of a story: what happened, and which of the four truths it changed.
type Row struct {
	// Number is that of its event in the history, or of the first and the last of
	// several, such as 12-13. The end of a validity is no event and has none.
	Number string
	// At is when it happened, since the start of the run, and Seconds the same as it
	// is told.
	At      time.Duration
	Seconds string
	// What happened, on the wire, in the script or in a client.
	What string
	// Belief is who believes from now on that it holds the lock, Server what became of
	// the key, Result what an operation returned, and Damage what the protected
	// resource did with a write. Each is empty if this changed nothing about it, but
	// Belief is a line where somebody holds on.
	Belief, Server, Result, Damage string
	// Events are the places in the history of the events that it tells.
	Events []int
	// Lanes are the places in the Narrative's Lanes of those whom it is about. [Narrate]
	// sets them.
	Lanes []int
	// Now are the four truths after it.
	Now Truths

	believed bool   // somebody believes at the end of it
	of       string // the client that it is about, if it tells no event
}

// holdsOn stands in a row's Belief between two changes, where somebody believes.
const holdsOn = "│"

// Believes reports whether the row says anew who believes.
func (r Row) Believes() bool { return r.Belief != "" && r.Belief != holdsOn }

// Headings returns what stands above the columns of rows.
func Headings() Row {
	return Row{Number: "#", Seconds: "seconds", What: "what happens",
		Belief: "belief", Server: "server", Result: "result", Damage: "damage"}
}

// Truths are the four truths at one time of a story.
type Truths struct {
	// Believers are the clients that believe that they hold the lock, in the order in
	// which they began to. If there are two, their holds overlap.
	Believers []string
	// Keys say of each server on which the key was changed whose it is, and until when.
	Keys []string
	// Results say of each client what its last operation returned.
	Results []string
	// Writes are what the protected resource did with each write so far.
	Writes []string
}

// Overlap reports whether two believe at once.
func (t Truths) Overlap() bool { return len(t.Believers) > 1 }

// A saying is the latest that there is to say about a client or server.
type saying struct{ of, text string }

// A ledger has the latest sayings about some clients or servers, in the order of their names.
type ledger []saying

// say puts a saying in place of what there was about its client or server.
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

// forget drops what there was about a client or server.
func (l *ledger) forget(of string) {
	if at, found := l.find(of); found {
		*l = slices.Delete(*l, at, at+1)
	}
}

// mostSayings is how many clients or servers a ledger has: a reader sees no more of them at once.
const mostSayings = 100

// find returns where a saying is or belongs: n10 comes behind n2.
func (l ledger) find(of string) (int, bool) {
	return slices.BinarySearchFunc(l, of, func(a saying, of string) int {
		return cmp.Or(cmp.Compare(len(a.of), len(of)), cmp.Compare(a.of, of))
	})
}

// list returns the sayings.
func (l ledger) list() []string { return each(l, func(a saying) string { return a.text }) }

// truths returns the four truths as far as the story is told. What did not change rows
// have in common.
func (s *story) truths() Truths {
	now := s.now
	now.Writes = slices.Clip(now.Writes)
	for _, v := range s.believers {
		now.Believers = append(now.Believers, shown(v.Client))
	}
	return now
}

// verdictLimit is how many letters of a verdict are shown: more are the stacks of a panic.
const verdictLimit = 20_000

// Narrate returns the story of a cell, with what the view shows of it, as [Story] writes it.
func Narrate(cell Cell, h checker.History, v View) Narrative {
	s := newStory(h)
	s.view = v
	s.name(cell)
	var t Narrative
	t.Heading = shortLine(text(func(b *bufio.Writer) { s.heading(b, cell) }))
	p := &diagramBuilder{story: s, cell: cell}
	p.lay()
	for _, lane := range p.lanes {
		if lane.Kind != diagram.Resource { // it comes last
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

// text returns what is written, without the space around it.
func text(write func(*bufio.Writer)) string {
	var text bytes.Buffer
	b := bufio.NewWriter(&text)
	write(b)
	b.Flush() // a buffer takes everything
	return strings.TrimSpace(text.String())
}

// about returns the lanes of those whom a row is about, in ascending order.
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

// printedRow leaves nothing in a row's texts that could do more than be read.
func printedRow(r Row) Row {
	r.Number, r.What = shown(r.Number), shortLine(r.What)
	for _, text := range []*string{&r.Belief, &r.Server, &r.Result, &r.Damage} {
		*text = shortLine(*text)
	}
	return r
}
