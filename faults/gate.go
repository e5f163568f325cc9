package faults

import (
	"slices"
	"strconv"
	"strings"
	"time"
)

// A Message is what a [Gate] needs to know of a request, reply or push.
type Message struct {
	Client, Node string
	Way          Way
	// Command is the request's name, or of a reply the name of the request
	// that it answers, in upper case; empty for a push.
	Command string
	// Words are those of that request, Keys the lock's, and Did is, of a reply,
	// what the request did: Taking, Freeing, or neither.
	Words, Keys []string
	Did         Effect

	// Service says that the server is none of Redis: words mean nothing of Redis's, and what the request does nobody knows. Opens
	// says that it belongs to the beginning or the end of a connection there, Quiet that it is the protocol's own affair, of which nobody
	// hears, and Also are the further commands of one that is several statements.
	Service, Opens, Quiet bool
	Also                  []string
}

// A Decision is what a [Gate] does with a message.
type Decision string

// The decisions.
const (
	Passes Decision = "pass"
	Holds  Decision = "hold"
	Delays Decision = "delay"
	Drops  Decision = "drop"
	Resets Decision = "reset"
)

// A Gate decides on every message by the orders that it was given; a message
// that no order matches passes. The youngest order that matches counts. The
// zero value passes everything. Not safe for concurrent use.
type Gate struct {
	given  []*order
	orders []*order // of those, what still stands
	nodes  int
}

type order struct {
	match Match
	does  Decision
	by    time.Duration
	left  int // messages to go; negative means no end
	met   int // messages that it has decided on
	freed []freed
}

// freed is whom an order was ended for: these clients on these nodes; empty lists mean
// all.
type freed struct{ clients, nodes []string }

func (f freed) has(m Message) bool {
	return (len(f.clients) == 0 || slices.Contains(f.clients, m.Client)) && (len(f.nodes) == 0 || slices.Contains(f.nodes, m.Node))
}

// NewGate returns a gate for a world of that many nodes, by which it knows
// which node is the [Quorum].
func NewGate(nodes int) *Gate { return &Gate{nodes: nodes} }

// Add gives the gate an order. Spans are in TTLs of the given length.
func (g *Gate) Add(o Order, ttl time.Duration) {
	order := o.order(ttl)
	if order.left == 0 {
		order.left = -1
	}
	g.given = append(g.given, &order)
	g.orders = append(g.orders, &order)
}

func (o Hold) order(time.Duration) order  { return order{match: o.Match, does: Holds, left: o.Times} }
func (o Drop) order(time.Duration) order  { return order{match: o.Match, does: Drops, left: o.Times} }
func (o Reset) order(time.Duration) order { return order{match: o.Match, does: Resets, left: o.Times} }
func (o Delay) order(ttl time.Duration) order {
	return order{match: o.Match, does: Delays, by: o.By.Of(ttl), left: o.Times}
}

// MatchCounts returns on how many messages each order has decided, in the order in which
// they were given, also of those that were ended since. A message that another
// order decided on was not met by it.
func (g *Gate) MatchCounts() []int {
	met := make([]int, len(g.given))
	for i, o := range g.given {
		met[i] = o.met
	}
	return met
}

// Decide says what to do with a message that arrives, and for Delays by how
// much. It counts the message against the order that matched.
func (g *Gate) Decide(m Message) (Decision, time.Duration) {
	for i := len(g.orders) - 1; i >= 0; i-- {
		o := g.orders[i]
		if o.left == 0 || slices.ContainsFunc(o.freed, func(f freed) bool { return f.has(m) }) || !o.match.Matches(m, g.nodes) {
			continue
		}
		o.left--
		o.met++
		return o.does, o.by
	}
	return Passes, 0
}

// EndHolds ends the holds for the named clients on the named nodes; an empty list
// means all.
func (g *Gate) EndHolds(clients, nodes []string) {
	g.end(freed{clients, ResolveNodes(nodes, g.nodes)}, func(d Decision) bool { return d == Holds })
}

// Clear ends the delays, drops and resets for the named clients, or for all if
// none is named.
func (g *Gate) Clear(clients []string) {
	g.end(freed{clients: clients}, func(d Decision) bool { return d != Holds })
}

// Direction returns what histories call the messages of that way.
func (w Way) Direction() string {
	switch w {
	case Before:
		return "request"
	case After:
		return "reply"
	}
	return "push"
}

func (g *Gate) end(of freed, which func(Decision) bool) {
	g.orders = slices.DeleteFunc(g.orders, func(o *order) bool {
		if !which(o.does) {
			return false
		}
		o.freed = append(o.freed, of)
		return len(of.clients) == 0 && len(of.nodes) == 0
	})
}

// Matches reports whether the message is one of those that the match selects,
// in a world of that many nodes.
func (m Match) Matches(msg Message, nodes int) bool {
	return m.Way == msg.Way &&
		(len(m.Clients) == 0 || slices.Contains(m.Clients, msg.Client)) &&
		(len(m.Nodes) == 0 || slices.Contains(ResolveNodes(m.Nodes, nodes), msg.Node)) &&
		(m.Way == Messages || m.means(msg))
}

// means reports whether the request is one of those that the match names.
func (m Match) means(msg Message) bool {
	switch {
	case m.Effect != "":
		return msg.has(m.Effect)
	case len(m.Commands) == 0:
		return !msg.SetsUp()
	}
	return slices.ContainsFunc(m.Commands, func(c string) bool {
		return sameCommand(c, msg.Command) || slices.Contains(msg.Also, c)
	})
}

// SetsUp reports whether the message is of a command that only sets a connection
// up, or takes it down. "Any command" doesn't mean those, and nobody waits for their replies: when a
// client library opens a connection is its own affair.
func (m Message) SetsUp() bool {
	if m.Service {
		return m.Opens
	}
	switch m.Command {
	case "HELLO", "AUTH", "CLIENT", "SELECT", "READONLY":
		return true
	}
	return false
}

func sameCommand(want, got string) bool {
	return want == got || want == "EVAL" && (strings.HasPrefix(got, "EVAL") || strings.HasPrefix(got, "FCALL"))
}

// ResolveNodes replaces [Quorum] by the node that it means among that many.
func ResolveNodes(names []string, nodes int) []string {
	if !slices.Contains(names, Quorum) {
		return names
	}
	names = slices.Clone(names)
	for i, name := range names {
		if name == Quorum {
			names[i] = NodeName(nodes / 2)
		}
	}
	return names
}

// NodeName returns the name of the i-th node, from 0: n1, n2 …
func NodeName(i int) string { return "n" + strconv.Itoa(i+1) }
