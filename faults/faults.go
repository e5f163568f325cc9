// Package faults defines the faults that lockfault injects between lock clients and their servers,
// the gate that decides on every message, and the World interface.
//
// A [Fault] comes in through [World.Apply]; events for the history go out. The package imports only
// checker of this module, for the events. Scripts, the harness and the worlds all use its types.
// The package executes no fault by itself: its sub-packages contain the worlds.
package faults

import (
	"errors"
	"time"
)

// Fault is a change to a client, a node, a link or a clock, or an order to the gate. String returns
// the fault as scripts write it, and Definition what is known of its kind, which does not depend on
// the fault's fields.
type Fault interface {
	String() string
	Definition() Definition
}

// Order is an instruction to the gate for a kind of message: a [Hold], [Delay], [Drop] or [Reset].
// Pass and Clear, which end orders, are not Orders.
type Order interface {
	Fault
	// About returns the match that selects the order's messages.
	About() Match
	order(ttl time.Duration) order
}

// Way selects the stage of a message that a [Match] is about.
type Way string

// The ways of a message. Scripts use the same words.
const (
	Before   Way = "before"   // a request, before the node executes it
	After    Way = "after"    // a reply, after the node executed the request
	Messages Way = "messages" // a push to a client that subscribes or tracks keys
)

// Match selects messages.
type Match struct {
	Clients []string // the clients of the message; empty means every client
	Way     Way
	// Commands are the request's names in upper case; empty means any command except those that
	// only set up a connection. EVAL also matches EVALSHA, FCALL and their _RO forms. Commands are
	// ignored with Messages.
	Commands []string
	// Effect, if not empty, selects requests by their effect and replaces Commands. Effect is one
	// of the [Effects] of Way.
	Effect Effect
	Nodes  []string // to or from which; empty means any
	// OrNone states that the order may match no message: a run without a match still tests its
	// scenario.
	OrNone bool
}

// Quorum is the name that scripts give to the node whose reply completes a majority: n1 of one
// node, n3 of five.
const Quorum = "quorum"

// orderFields returns the fields of an order: the clients, the messages, and the clauses, with further
// clauses before them.
func orderFields(m *Match, times *int, further ...Field) []Field {
	fields := append([]Field{clientList(&m.Clients), {Value: MessagesField{m}}}, further...)
	return append(fields, clause(nodesAfter("on", &m.Nodes)), clause(Field{Keyword: "times", Value: CountField{times}}),
		clause(Field{Value: FlagField{&m.OrNone, "or none"}}))
}

// ErrUnsupported reports that a world cannot execute a fault.
var ErrUnsupported = errors.New("faults: not possible in this world")
