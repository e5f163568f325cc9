package topology

import (
	"slices"
	"time"

	"github.com/lockfault/lockfault/checker"
	"github.com/lockfault/lockfault/faults"
)

// A Message is a request, reply or push that has arrived where it goes in: a
// world's, which says what it is, and carries out what becomes of it.
type Message interface {
	// Owner is the client that sent it or is to have it, and About what the
	// gate needs to know.
	Owner() *Client
	About() faults.Message
	// Lane is the direction of the connection that it came on.
	Lane() *Lane
	// Gone reports whether nobody is there any more to take it.
	Gone() bool
	// Said returns the command as histories have it, the reply or push, empty
	// for a request, and when it was sent.
	Said() (command, reply string, sent time.Duration)

	// Enter lets it in.
	Enter()
	// Discard loses it: alone, or with all that follows on its lane.
	Discard(alone bool)
	// Break resets its connection.
	Break()
	// Later has something done so long after it arrived, on its behalf.
	Later(by time.Duration, do func())
	// Free lets arrive what came behind it while it was stuck.
	Free()
}

// A Lane is one direction of a connection. It keeps its order and can't leave
// out its middle: nothing arrives while a message is stuck, and nothing any more
// when one was lost. The zero value is free.
type Lane struct {
	Lost  bool
	Stuck Message // held, delayed, or waiting for its turn; nil if none is
}

// Arrive decides what becomes of a message: links and gate have their say before
// it goes in. Nothing may be stuck on its lane.
func (t *Topology) Arrive(m Message) {
	if m.Gone() {
		return
	}
	about, on := m.About(), m.Lane()
	if on.Lost || t.cut(about) {
		t.lose(m, about)
		return
	}
	switch does, by := t.Gate.Decide(about); does {
	case faults.Holds:
		t.TellOf(checker.Held, m)
		on.Stuck = m
		t.held = append(t.held, m)
	case faults.Delays:
		on.Stuck = m
		m.Later(by, func() { t.loosen(m) })
	case faults.Drops:
		t.lose(m, about)
	case faults.Resets:
		t.TellOf(checker.Dropped, m)
		m.Owner().State.Lost++
		m.Break()
	default:
		m.Enter()
	}
}

func (t *Topology) cut(m faults.Message) bool { return t.Links.On(Link{m.Client, m.Node}).Cut }

// loosen lets in a message that was stuck, unless its way was cut meanwhile,
// and then what waited behind it.
func (t *Topology) loosen(m Message) {
	m.Lane().Stuck = nil
	switch about := m.About(); {
	case m.Gone():
	case t.cut(about):
		t.lose(m, about)
	default:
		m.Enter()
	}
	m.Free()
}

func (t *Topology) lose(m Message, about faults.Message) {
	if !about.Quiet {
		t.TellOf(checker.Dropped, m)
		m.Owner().State.Lost++
	}
	// A server drops messages of a subscription one by one.
	alone := about.Way == faults.Messages && !m.Lane().Lost && !t.cut(about)
	m.Lane().Lost = m.Lane().Lost || !alone
	m.Discard(alone)
}

// pass lets messages in that the gate holds, the oldest first.
func (t *Topology) pass(p faults.Pass) {
	if !p.Once {
		t.Gate.EndHolds(p.Clients, p.Nodes)
	}
	nodes := faults.ResolveNodes(p.Nodes, t.cfg.Nodes)
	meant := func(m Message) bool {
		return (len(p.Clients) == 0 || slices.Contains(p.Clients, m.Owner().Name)) && (len(nodes) == 0 || slices.Contains(nodes, m.About().Node))
	}
	var passing []Message
	t.held = slices.DeleteFunc(t.held, func(m Message) bool {
		if !meant(m) || p.Once && len(passing) > 0 {
			return false
		}
		passing = append(passing, m)
		return true
	})
	for _, m := range passing {
		t.TellOf(checker.Passed, m)
		t.loosen(m)
	}
}

// Forget lets go of messages that the gate holds, whose connection has ended.
func (t *Topology) Forget(ended func(Message) bool) { t.held = slices.DeleteFunc(t.held, ended) }

// Received takes note of a reply or push that its client is about to have.
func (t *Topology) Received(m Message) {
	kind := checker.Push
	if m.About().Way == faults.After {
		kind = checker.Reply
		if !m.About().SetsUp() {
			m.Owner().State.Replies++
		}
	}
	t.TellOf(kind, m)
}

// TellOf records what befell a message, if somebody records.
func (t *Topology) TellOf(kind checker.Kind, m Message) {
	if !t.driver.Records() {
		return
	}
	about := m.About()
	e := checker.Event{Kind: kind, Client: about.Client, Node: about.Node}
	e.Command, e.Reply, e.Sent = m.Said()
	if kind != checker.Reply && kind != checker.Push {
		e.Direction = about.Way.Direction()
	}
	t.driver.Record(e)
}
