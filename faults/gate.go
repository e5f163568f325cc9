package faults

import (
	"slices"
	"strconv"
	"time"

	"github.com/lockfault/lockfault/internal/rediscmd"
)

// Message describes a request, reply or push to a [Gate].
type Message struct {
	Client, Node string
	Way          Way
	// Command is the request's name in upper case. For a reply it is the name of the request that
	// the reply answers; for a push it is empty.
	Command string
	// Words are the words of the request, and Keys are the lock's keys. Did is set for a reply:
	// what the request did, Taking, Freeing or empty.
	Words, Keys []string
	Did         Effect

	// Service reports that the server is not Redis: Words are not Redis commands, and the effects
	// Writing and Reading are unknown. Opens reports that the message belongs to the start or the
	// end of a connection to such a service. Quiet reports that the message is internal to the
	// protocol, so no event records its loss. Also lists the further commands of a message with
	// several statements.
	Service, Opens, Quiet bool
	Also                  []string
}

// Decision is what a [Gate] does with a message.
type Decision string

// The decisions of a [Gate].
const (
	Passes Decision = "pass"
	Holds  Decision = "hold"
	Delays Decision = "delay"
	Drops  Decision = "drop"
	Resets Decision = "reset"
)

// Gate decides on every message by its orders. The most recent order that matches applies; a
// message that matches no order passes. The zero value passes everything. A Gate is not safe for
// concurrent use.
type Gate struct {
	given  []*order
	orders []*order // the orders of given that are still in force
	nodes  int
}

type order struct {
	match Match
	does  Decision
	by    time.Duration
	left  int // messages that remain; negative means no limit
	met   int // messages on which this order has decided
	freed []freed
}

// freed holds the clients and nodes for which an order has ended; an empty list means all.
type freed struct{ clients, nodes []string }

func (f freed) has(m Message) bool {
	return (len(f.clients) == 0 || slices.Contains(f.clients, m.Client)) && (len(f.nodes) == 0 || slices.Contains(f.nodes, m.Node))
}

// NewGate returns a gate for a world of the given number of nodes. The number determines the node
// that [Quorum] names.
func NewGate(nodes int) *Gate { return &Gate{nodes: nodes} }

// Add adds an order. ttl is the lock's TTL, which converts the order's spans to durations.
func (g *Gate) Add(o Order, ttl time.Duration) {
	order := o.order(ttl)
	if order.left == 0 {
		order.left = -1
	}
	g.given = append(g.given, &order)
	g.orders = append(g.orders, &order)
}

// MatchCounts returns for each order how many messages that order has decided on. The counts are in
// the order of Add and include orders that have ended. A message counts only for the order that
// decided on it.
func (g *Gate) MatchCounts() []int {
	met := make([]int, len(g.given))
	for i, o := range g.given {
		met[i] = o.met
	}
	return met
}

// Decide returns what to do with a message that arrives and, for Delays, the length of the delay.
// Decide counts the message for the order that matched.
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

// EndHolds ends the holds for the named clients on the named nodes; an empty list means all.
func (g *Gate) EndHolds(clients, nodes []string) {
	g.end(freed{clients, ResolveNodes(nodes, g.nodes)}, func(d Decision) bool { return d == Holds })
}

// Clear ends the delays, drops and resets for the named clients, or for all clients if none is
// named.
func (g *Gate) Clear(clients []string) {
	g.end(freed{clients: clients}, func(d Decision) bool { return d != Holds })
}

// Direction returns the direction that histories record for messages of this way: request, reply or
// push.
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

// Matches reports whether the match selects the message in a world of the given number of nodes.
func (m Match) Matches(msg Message, nodes int) bool {
	return m.Way == msg.Way &&
		(len(m.Clients) == 0 || slices.Contains(m.Clients, msg.Client)) &&
		(len(m.Nodes) == 0 || slices.Contains(ResolveNodes(m.Nodes, nodes), msg.Node)) &&
		(m.Way == Messages || m.means(msg))
}

// means reports whether the match selects the message by its effect or command.
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

// SetsUp reports whether the message belongs to a command that only sets up or closes a connection.
// A match without commands does not select such messages, and no count of replies includes them,
// because the client library alone decides when it opens a connection.
func (m Message) SetsUp() bool {
	if m.Service {
		return m.Opens
	}
	return rediscmd.Lookup(m.Command).SetsUp
}

func sameCommand(want, got string) bool {
	return want == got || want == "EVAL" && rediscmd.Lookup(got).RunsScript()
}

// ResolveNodes returns names with [Quorum] replaced by the node that it means among the given
// number of nodes. ResolveNodes does not modify names.
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

// NodeName returns the name of the i-th node, counted from 0: n1, n2 …
func NodeName(i int) string { return "n" + strconv.Itoa(i+1) }
