package reports

import (
	"bufio"
	"cmp"
	"fmt"
	"io"
	"slices"
	"sort"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/lockfault/lockfault/checker"
	"github.com/lockfault/lockfault/faults"
)

// Story writes the events of one cell for a reader, in order of time, followed by the verdict with
// the events that prove it.
//
// The view selects the events. Each line begins with an event's index in the history. The wire and
// the script are on the left, and the four truths (belief, server, result, damage) are in columns
// on the right. A run of rounds in which a client sent the same requests and got the same replies
// is one line at the position of its first event, with the numbers of the first and the last event.
// Events that prove something are never folded.
func Story(w io.Writer, cell Cell, h checker.History, v View) error {
	b := newText(w)
	s := newStory(h)
	s.view = v
	s.name(cell)
	s.heading(b, cell)
	if len(h.Events) > 0 {
		s.listing(b)
		if !v.excerpt() {
			s.summary(b)
		}
	}
	s.verdict(b, cell)
	return b.Flush()
}

type story struct {
	h     checker.History
	view  View
	named map[int]bool // events that prove something
	// last is the position of the last event that the checker judges.
	last int
	// failed maps the position of a failover to the previous request that reached a server of its
	// node, or -1 without such a request.
	failed map[int]int
	// replyAt maps a request to its reply, and requestAt a reply to its request. Both hold
	// positions, and only of pairs.
	replyAt, requestAt map[int]int
	// caused maps the change of a key to the request that made it, by position.
	caused map[int]int
	// lost maps a request to the event at which its reply was lost, and lacks maps that event to
	// the request, by position.
	lost, lacks map[int]int
	// changed maps the change of a server's key to the previous one on that server, by position.
	changed map[int]int
	digits  int // decimal places of times
	// beliefs holds the holds of the history, begun counts those that have begun, and believers
	// holds the current ones.
	beliefs, believers []checker.Hold
	begun              int
	// keys and results hold the current state of servers and clients. now holds the truths except
	// belief.
	keys, results ledger
	now           Truths
}

func newStory(h checker.History) *story {
	s := &story{h: h, beliefs: checker.Holds(h), digits: 3, named: map[int]bool{}, failed: map[int]int{}, replyAt: map[int]int{}, requestAt: map[int]int{}, caused: map[int]int{}, lost: map[int]int{}, lacks: map[int]int{}}
	if h.Meta.TTL < time.Second {
		s.digits = 6 // such a short lease ends within a few commands
	}
	if s.last = slices.IndexFunc(h.Events, func(e checker.Event) bool { return e.Kind == checker.End }); s.last < 0 {
		s.last = len(h.Events) - 1
	}
	s.pair()
	s.trace()
	s.serve()
	return s
}

// name records which events prove something.
func (s *story) name(cell Cell) {
	for _, w := range cell.Witnesses {
		for _, i := range w.Events {
			s.named[i] = true
		}
	}
	if cell.Conflict != nil {
		for _, i := range cell.Conflict.Events {
			s.named[i] = true
		}
	}
}

// pair matches replies with requests on the same connection with the same command. A reply belongs
// to the last such request that had arrived when the reply was sent, since an earlier request may
// have got no reply.
func (s *story) pair() {
	type line struct {
		client, node string
		conn         int
		command      string
	}
	waiting := map[line][]int{}
	for i, e := range s.h.Events {
		on := line{e.Client, e.Node, e.Conn, e.Command}
		list := waiting[on]
		switch {
		case e.Kind == checker.Request:
			waiting[on] = append(list, i)
		case e.Kind == checker.Reply && len(list) > 0:
			at := max(0, sort.Search(len(list), func(k int) bool { return s.h.Events[list[k]].Time > e.Sent })-1)
			s.replyAt[list[at]], s.requestAt[i] = i, list[at]
			if at < len(list)/2 { // move the shorter part
				copy(list[1:], list[:at])
				waiting[on] = list[1:]
			} else {
				waiting[on] = slices.Delete(list, at, at+1)
			}
		case e.Kind == checker.Dropped && e.Direction == "reply" && len(list) > 0:
			s.lost[list[0]], s.lacks[i] = i, list[0]
			waiting[on] = list[1:]
		}
	}
}

// trace finds the request that caused each change of a key. In virtual time it is the previous
// event. Real servers are asked for the state of a key afterwards, so other events may lie in
// between.
func (s *story) trace() {
	type path struct{ client, node string }
	type sending struct {
		client string
		at     time.Duration
	}
	waiting := map[path][]int{} // requests whose reply comes or is lost; trimmed at the front
	silent := map[path]int{}    // first request that gets no reply
	done := map[int]bool{}
	sent := map[sending]int{} // first request sent at that time
	for i, e := range s.h.Events {
		on := path{e.Client, e.Node}
		switch {
		case e.Kind == checker.Request && !e.Silent:
			if s.replyAt[i] > 0 || s.lost[i] > 0 {
				waiting[on] = append(waiting[on], i)
			} else if _, ok := silent[on]; !ok {
				silent[on] = i
			}
			if _, ok := sent[sending{e.Client, e.Sent}]; !ok {
				sent[sending{e.Client, e.Sent}] = i
			}
		case e.Kind == checker.Reply || e.Kind == checker.Dropped:
			request, ok := s.requestAt[i]
			if e.Kind == checker.Dropped {
				request, ok = s.lacks[i]
			}
			if ok {
				done[request] = true
			}
		case e.Kind == checker.State:
			for len(waiting[on]) > 0 && done[waiting[on][0]] {
				waiting[on] = waiting[on][1:]
			}
			switch {
			case e.Sent > 0: // the change records when its request was sent
				if at, ok := sent[sending{e.Client, e.Sent}]; ok {
					s.caused[i] = at
				}
			case i > 0 && belongs(s.h.Events[i-1], e):
				s.caused[i] = i - 1
			case s.h.Meta.Service != "": // any pending request may have caused it
			case e.Cause == checker.ByCommand:
				// Take the first of several requests that gets a reply: a server executes them in
				// order.
				if list := waiting[on]; len(list) > 0 {
					s.caused[i] = list[0]
				} else if at, ok := silent[on]; ok {
					s.caused[i] = at
				}
			}
		}
	}
}

// serve finds the server that each failover replaced.
func (s *story) serve() {
	served := map[string]int{} // last request, by node
	for i, e := range s.h.Events {
		switch e.Kind {
		case checker.Request:
			served[e.Node] = i
		case checker.Fault:
			if d, _ := faults.DefinitionOf(strings.Fields(e.Text)); d.Name != (faults.Failover{}).Definition().Name {
				continue
			}
			at, ok := served[e.Node]
			if !ok {
				at = -1
			}
			s.failed[i] = at
		}
	}
}

func (s *story) heading(b *bufio.Writer, cell Cell) {
	m := s.h.Meta
	fmt.Fprintf(b, "%s under %s", cell.Strategy, cell.Scenario)
	if m.TTL > 0 {
		fmt.Fprintf(b, ", lease %v, seed %d, world %s", m.TTL, m.Seed, m.World)
	}
	b.WriteString("\n\n")
}

func (s *story) listing(b *bufio.Writer) {
	rows := s.rows()
	if s.view.Around != nil {
		rows = s.view.Around.cut(rows)
	}
	head := Headings()
	var widths [6]int
	for _, r := range append([]Row{head}, rows...) {
		for i, text := range []string{r.Number, r.Seconds, r.What, r.Belief, r.Server, r.Result} {
			widths[i] = max(widths[i], utf8.RuneCountInString(text))
		}
	}
	write := func(r Row) {
		line := fmt.Sprintf("%*s  %*s  ", widths[0], r.Number, widths[1], r.Seconds)
		line += pad(r.What, widths[2]+2) + pad(r.Belief, widths[3]+2) + pad(r.Server, widths[4]+2)
		line += pad(r.Result, widths[5]+2) + r.Damage
		writeLine(b, line)
	}
	write(head)
	for _, r := range rows {
		write(r)
	}
	b.WriteByte('\n')
}

// rows returns the rows of the shown events. A command and the change of the key that it causes
// share a row, as do a line of the script and its immediate effect.
func (s *story) rows() []Row {
	var rows []Row
	folded := map[int]fold{} // fold of each folded event, by position
	if !s.view.All && s.view.Around == nil {
		for _, f := range s.folds() {
			for _, i := range f.events {
				folded[i] = f
			}
		}
	}
	for i := 0; i < len(s.h.Events); i++ {
		at, e := i, s.h.Events[i]
		rows = append(rows, s.expire(i)...)
		r := s.row(i)
		r.Events = []int{i}
		if i+1 < len(s.h.Events) {
			if next := s.h.Events[i+1]; belongs(e, next) {
				second := s.row(i + 1)
				r.Number += "-" + second.Number
				r.Server = second.Server
				r.Belief, r.believed, r.Now = second.Belief, second.believed, second.Now
				i++
				r.Events = append(r.Events, i)
			}
		}
		f, isFolded := folded[at]
		switch {
		case !s.shows(at) || isFolded && at != f.events[0]:
			continue
		case isFolded:
			last := s.h.Events[f.events[len(f.events)-1]]
			number, _, _ := strings.Cut(r.Number, "-") // the number may be a range with its change
			r.Number, r.What, r.Events = fmt.Sprintf("%s-%d", number, last.Index), f.text, f.events
			if f.counted > 0 {
				r.Server = s.server(s.h.Events[f.counted])
			}
		}
		rows = append(rows, r)
	}
	// Between two changes of belief, a line shows that a client still believes.
	for i := range rows {
		if rows[i].Belief == "" && rows[i].believed {
			rows[i].Belief = holdsOn
		}
	}
	return rows
}

// shows reports whether the view includes the event at position i.
func (s *story) shows(i int) bool {
	if s.view.Around != nil && s.view.Around.Event == i {
		return true
	}
	if request, ok := s.requestAt[i]; ok {
		i = request // a request names its server
	}
	return s.view.shows(s.h.Events[i], s.h.Meta.Clients)
}

// belongs reports whether b is only the effect or the record of a.
func belongs(a, b checker.Event) bool {
	if a.Time != b.Time {
		return false
	}
	switch {
	case a.Kind == checker.Request && b.Kind == checker.State:
		return b.Cause == checker.ByCommand && a.Client == b.Client && a.Node == b.Node
	case a.Kind == checker.Step:
		return a.Text == happening(b)
	}
	return false
}

// happening returns the script line that would cause the event, or "" if no line could.
func happening(e checker.Event) string {
	switch e.Kind {
	case checker.Fault:
		return e.Text
	case checker.Pause, checker.Resume, checker.Crash, checker.Restart, checker.Cancel:
		return e.Client + " " + string(e.Kind)
	}
	return ""
}

// row returns the row of the event at position i, and updates the state of the story.
func (s *story) row(i int) Row {
	e := s.h.Events[i]
	r := Row{Number: fmt.Sprint(e.Index), At: e.Time, Seconds: s.seconds(e.Time), What: s.what(e)}
	switch e.Kind {
	case checker.Return:
		r.Result = fmt.Sprintf("%s %s: %s", e.Client, e.Op, e.Result)
		s.results.say(e.Client, r.Result)
		s.now.Results = s.results.list()
	case checker.State:
		r.Server = s.server(e)
		s.keys.say(serverOf(e), s.keyText(e))
		s.now.Keys = s.keys.list()
	case checker.Fault:
		if at, ok := s.failed[i]; ok && at >= 0 { // the server is gone with all its data
			s.keys.forget(serverOf(s.h.Events[at]))
			s.now.Keys = s.keys.list()
		}
	case checker.Write:
		r.Damage = e.Client + " accepted"
		if !e.Accepted {
			r.Damage = e.Client + " refused"
		}
		if e.Token != 0 {
			r.Damage += fmt.Sprintf(" (token %d)", e.Token)
		}
		s.now.Writes = append(s.now.Writes, shortLine(r.Damage))
	}
	if s.believe(i) {
		r.Belief = s.belief()
	}
	r.believed = len(s.believers) > 0
	r.Now = s.truths()
	return r
}

// expire ends the holds whose validity is over when the event at position i happens, and returns
// their rows.
func (s *story) expire(i int) []Row {
	var rows []Row
	for _, v := range slices.Clone(s.believers) {
		if v.Ended != i || v.By != checker.ByValidity {
			continue
		}
		s.believers = slices.DeleteFunc(s.believers, func(other checker.Hold) bool { return other == v })
		if !s.view.shows(checker.Event{Kind: checker.Lost, Client: v.Client}, s.h.Meta.Clients) {
			continue
		}
		rows = append(rows, Row{
			At: v.End, Seconds: s.seconds(v.End), What: v.Client + "'s validity ends", of: v.Client,
			Belief: s.belief(), believed: len(s.believers) > 0, Now: s.truths(),
		})
	}
	return rows
}

// believe updates the believers for the event at position i, and reports whether they changed.
func (s *story) believe(i int) (changed bool) {
	before := len(s.believers)
	s.believers = slices.DeleteFunc(s.believers, func(v checker.Hold) bool { return v.Ended == i })
	changed = len(s.believers) < before
	for ; s.begun < len(s.beliefs) && s.beliefs[s.begun].Began == i; s.begun++ {
		s.believers, changed = append(s.believers, s.beliefs[s.begun]), true
	}
	return changed
}

// belief names the clients that believe.
func (s *story) belief() string {
	if len(s.believers) == 0 {
		return "nobody"
	}
	return strings.Join(each(s.believers, func(v checker.Hold) string { return v.Client }), " and ")
}

// server describes the new state of the key, with the cause if it was not a command.
func (s *story) server(e checker.Event) string {
	text := s.keyText(e)
	if e.Cause != checker.ByCommand && e.Cause != "" {
		text += fmt.Sprintf(" (%s)", e.Cause)
	}
	return text
}

// keyText describes the state of the key on a server: its owner or value, and its expiry.
func (s *story) keyText(e checker.Event) string {
	text := placeOf(e)
	switch {
	case e.Owner == "" && e.Value == "":
		text += ": free"
	case e.Owner == "":
		text += ": " + e.Value
	default:
		text += ": " + e.Owner
	}
	if e.Owner != "" || e.Value != "" {
		if e.Expires == 0 {
			text += ", no TTL"
		} else {
			text += " until " + s.seconds(e.Expires)
		}
	}
	return text
}

// placeOf returns the name of an event's server, or of its node for the first server of a node.
func placeOf(e checker.Event) string {
	if e.Server == e.Node+"/0" {
		return e.Node
	}
	return cmp.Or(e.Server, e.Node)
}

// what describes an event on the wire, in the script or in a client.
func (s *story) what(e checker.Event) string {
	switch e.Kind {
	case checker.Step:
		return fmt.Sprintf("── line %d: %s", e.Line, e.Text)
	case checker.Invoke:
		return fmt.Sprintf("%s calls %s", e.Client, e.Op)
	case checker.Return:
		text := fmt.Sprintf("%s's %s returns", e.Client, e.Op)
		if e.Error != "" {
			text += ": " + e.Error
		}
		if e.Token != 0 {
			text += fmt.Sprintf(", fencing token %d", e.Token)
		}
		if e.Until != 0 {
			text += ", valid until " + s.seconds(e.Until)
		}
		return clip(text)
	case checker.Lost:
		return e.Client + "'s lock says that it is lost"
	case checker.Write:
		return e.Client + " writes"
	case checker.Request:
		return clip(fmt.Sprintf("%s → %s  %s", e.Client, e.Node, e.Command))
	case checker.Reply:
		return clip(fmt.Sprintf("%s ← %s  %s", e.Client, e.Node, e.Reply))
	case checker.Push:
		return clip(fmt.Sprintf("%s ← %s  message %s", e.Client, e.Node, e.Reply))
	case checker.Held, checker.Passed, checker.Dropped:
		return clip(fmt.Sprintf("%s: %s", e.Kind, s.message(e)))
	case checker.Crash:
		return e.Client + " crashes"
	case checker.Cancel:
		return e.Client + "'s caller gives up"
	case checker.Pause, checker.Resume, checker.Restart:
		return fmt.Sprintf("%s %ss", e.Client, e.Kind)
	case checker.Fault:
		return e.Text
	case checker.Measure:
		return fmt.Sprintf("stopwatch %s reads %v", e.Text, e.Took)
	case checker.State:
		return ""
	case checker.End:
		return "── the end"
	}
	return string(e.Kind)
}

// message describes a message that the gate held, passed or dropped.
func (s *story) message(e checker.Event) string {
	switch e.Direction {
	case "reply":
		return fmt.Sprintf("%s ← %s  reply to %s", e.Client, e.Node, e.Command)
	case "push":
		return fmt.Sprintf("%s ← %s  message", e.Client, e.Node)
	default:
		return fmt.Sprintf("%s → %s  %s", e.Client, e.Node, e.Command)
	}
}

// seconds formats a time since the start of the run.
func (s *story) seconds(d time.Duration) string {
	return fmt.Sprintf("%.*f", s.digits, d.Seconds())
}

// serverOf returns the name of an event's server. An event without a server belongs to the first
// server of its node.
func serverOf(e checker.Event) string {
	if e.Server == "" {
		return e.Node + "/0"
	}
	return e.Server
}
