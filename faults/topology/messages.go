package topology

import (
	"slices"
	"time"

	"github.com/lockfault/lockfault/checker"
	"github.com/lockfault/lockfault/faults"
)

// Message is a request, reply or push that has arrived at its destination and has not entered yet.
// Each world implements it: the methods describe the message and carry out the decision about it.
type Message interface {
	// Owner returns the client that sent the message or receives it. About returns the description
	// for the gate.
	Owner() *Client
	About() faults.Message
	// Lane returns the direction of the connection on which the message came.
	Lane() *Lane
	// Gone reports whether the receiver no longer exists.
	Gone() bool
	// Said returns the command as histories show it, the reply or push (empty for a request), and
	// the send time.
	Said() (command, reply string, sent time.Duration)

	// Enter delivers the message to its receiver.
	Enter()
	// Discard loses the message: only this message if alone, otherwise also all that follow on its
	// lane.
	Discard(alone bool)
	// Break resets the message's connection.
	Break()
	// Later calls do after the duration by, counted from the message's arrival.
	Later(by time.Duration, do func())
	// Free lets the messages arrive that waited behind this message while it was stuck.
	Free()
}

// Lane is one direction of a connection. A Lane keeps the order of messages and cannot skip any:
// nothing arrives while a message is stuck, and nothing arrives after a lost message, except pushes
// that are dropped alone. The zero value is a lane with nothing stuck and nothing lost.
type Lane struct {
	Lost  bool
	Stuck Message // held, delayed, or waiting for its turn; nil if no message is stuck
}

// Arrive decides what happens to a message before it enters: first by its link, then by the gate.
// No message may be stuck on its lane.
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

// loosen delivers a message that was stuck, unless its link was cut meanwhile, and then the
// messages that waited behind it.
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
	// A server drops pushes individually, so later pushes still arrive.
	alone := about.Way == faults.Messages && !m.Lane().Lost && !t.cut(about)
	m.Lane().Lost = m.Lane().Lost || !alone
	m.Discard(alone)
}

// pass delivers messages that the gate holds, the oldest first.
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

// Forget removes held messages for which ended returns true, because their connection has ended.
func (t *Topology) Forget(ended func(Message) bool) { t.held = slices.DeleteFunc(t.held, ended) }

// Received records a reply or push that its client is about to receive, and counts the reply.
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

// TellOf records an event of a message, if the driver records events.
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
