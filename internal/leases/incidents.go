package leases

import (
	"math"
	"slices"
	"strings"
	"time"

	"github.com/lockfault/lockfault/checker"
	"github.com/lockfault/lockfault/faults"
	"github.com/lockfault/lockfault/internal/rediscmd"
	"github.com/lockfault/lockfault/scenarios"
)

// An effect is what a fault does to a lock.
type effect int

const (
	loses       effect = iota // a server loses the lock, or has never received it
	fails                     // a primary was replaced: what replicas lacked is lost
	splits                    // two servers act as the node
	moves                     // a server's clock moves
	unusable                  // a server does not execute commands that lock
	cutOff                    // messages between a client and a node are lost or late
	paused                    // a client stands still
	gone                      // a client's process ended
	clientMoves               // a client's clock moves
	lagging                   // replicas do not receive what their primary executes
)

// never is the end of an incident that the history does not end.
const never = time.Duration(math.MaxInt64)

// An incident is the interval in which a fault has an effect. The effect of an incident without
// length, such as a flush, is immediate.
type incident struct {
	effect   effect
	from, to time.Duration
	client   string   // empty: every client, or the effect concerns none
	node     string   // empty: every node, or the effect concerns none
	text     string   // the fault in the words of the script, or a description
	ends     []string // words of the faults that end it
}

// overlaps reports whether the incident has an effect between two times, inclusive.
func (i incident) overlaps(from, to time.Duration) bool { return i.from <= to && i.to >= from }

// incidents returns the incidents of a history, in the order in which they began.
func incidents(h checker.History) []incident {
	var all []incident
	open := func(i incident) { i.to = never; all = append(all, i) }
	end := func(t time.Duration, is func(incident) bool) {
		for k := range all {
			if all[k].to == never && is(all[k]) {
				all[k].to = t
			}
		}
	}
	for _, e := range unanswered(h) {
		all = append(all, incident{effect: cutOff, from: e.Sent, to: e.Time, client: e.Client, node: e.Node, text: "a reply to " + e.Client + " was lost or late"})
	}
	for _, e := range h.Events {
		switch t := e.Time; e.Kind {
		case checker.Pause:
			open(incident{effect: paused, from: t, client: e.Client, text: e.Client + " paused"})
		case checker.Resume:
			end(t, func(i incident) bool { return i.effect == paused && i.client == e.Client })
		case checker.Crash:
			end(t, func(i incident) bool { return i.effect == paused && i.client == e.Client })
			open(incident{effect: gone, from: t, client: e.Client, text: e.Client + " crashed"})
		case checker.Restart:
			end(t, func(i incident) bool { return i.effect == gone && i.client == e.Client })
		case checker.Held:
			if e.Direction == "push" { // a message that a lock must be able to miss
				continue
			}
			open(incident{effect: cutOff, from: min(t, sentOr(e)), client: e.Client, node: e.Node, text: "a " + e.Direction + " of " + e.Client + wasHeld})
		case checker.Passed:
			end(t, func(i incident) bool { return i.effect == cutOff && i.client == e.Client && i.node == e.Node })
		case checker.Dropped:
			if e.Direction == "push" {
				continue
			}
			all = append(all, incident{effect: cutOff, from: min(t, sentOr(e)), to: t, client: e.Client, node: e.Node, text: "a " + e.Direction + " of " + e.Client + " was lost"})
		case checker.Request, checker.Reply:
			if h.Meta.TTL > 0 && e.Sent > 0 && t-e.Sent > h.Meta.TTL/10 { // late, by a fault or behind other messages
				all = append(all, incident{effect: cutOff, from: e.Sent, to: t, client: e.Client, node: e.Node, text: "messages of " + e.Client + " were late"})
			}
		case checker.State:
			switch e.Cause {
			case checker.ByRestart, checker.ByFlush, checker.ByEviction, checker.ByReplication, checker.BySession:
				all = append(all, incident{effect: loses, from: t, to: t, node: e.Node, text: e.Node + " lost the key (" + string(e.Cause) + ")"})
			case checker.ByFailover:
				all = append(all, incident{effect: fails, from: t, to: t, node: e.Node, text: e.Node + " failover"})
			}
		case checker.Fault:
			f, err := scenarios.ParseFault(e.Text)
			if err != nil {
				continue // a note of the world
			}
			all = addFault(all, h, t, f, e.Text)
		}
	}
	return all
}

// unanswered returns the requests whose client got no reply for a tenth of a lease, though the command
// does not block. Time of each is when the client got the reply, or closed the connection, or when a
// tenth of a lease had passed.
func unanswered(h checker.History) (list []checker.Event) {
	type conn struct {
		client, node string
		number       int
	}
	pending := map[conn][]checker.Event{}
	late := func(e checker.Event, t time.Duration) {
		if h.Meta.TTL > 0 && t-e.Time > h.Meta.TTL/10 {
			e.Sent, e.Time = sentOr(e), t
			list = append(list, e)
		}
	}
	last := time.Duration(0)
	for _, e := range h.Events {
		last = e.Time
		at := conn{e.Client, e.Node, e.Conn}
		switch e.Kind {
		case checker.Request:
			if words := words(e.Command); len(words) > 0 && !e.Silent {
				if c := rediscmd.Of(words); c == nil || !c.Blocks(words) {
					pending[at] = append(pending[at], e)
				}
			}
		case checker.Reply:
			for k, p := range pending[at] {
				if p.Command == e.Command {
					late(p, e.Time)
					pending[at] = slices.Delete(pending[at], k, k+1)
					break
				}
			}
		case checker.Crash:
			for at := range pending {
				if at.client == e.Client {
					delete(pending, at)
				}
			}
		}
	}
	for _, requests := range pending {
		for _, p := range requests {
			late(p, min(last, p.Time+h.Meta.TTL/10+1))
		}
	}
	slices.SortFunc(list, func(a, b checker.Event) int { return a.Index - b.Index })
	return list
}

// sentOr returns when a message was sent, or when the event happened.
func sentOr(e checker.Event) time.Duration {
	if e.Sent > 0 {
		return e.Sent
	}
	return e.Time
}

// addFault ends the incidents that a fault ends, and adds its own. The words that end a fault are those
// of its definition.
func addFault(all []incident, h checker.History, t time.Duration, f faults.Fault, text string) []incident {
	d := f.Definition()
	where := placesOf(f, h.Meta)
	for k := range all {
		if i := &all[k]; i.to == never && slices.Contains(i.ends, d.Word) && slices.ContainsFunc(where, i.at) {
			i.to = t
		}
	}
	ends := replaced[d.Name]
	if d.Shown != nil {
		ends = d.Shown.Ends
	}
	for _, e := range effectsOf(f, h.Meta.TTL) {
		for _, p := range where {
			i := incident{effect: e.effect, from: t, to: never, client: p.client, node: p.node, text: text, ends: ends}
			if e.lasts >= 0 {
				i.to = t + e.lasts
			}
			all = append(all, i)
		}
	}
	return all
}

// replaced holds the words that end a fault which pictures do not show: a later fault of the same kind
// replaces it.
var replaced = map[string][]string{"latency": {"latency"}, "bandwidth": {"bandwidth"}, "delay": {"clear"}}

// A place is what a fault is about: a client, a node, or the link between both.
type place struct{ client, node string }

// at reports whether the incident is at a place.
func (i incident) at(p place) bool {
	return (p.client == "" || i.client == p.client) && (p.node == "" || i.node == p.node)
}

// placesOf returns the places of a fault. A fault of links that names no client, or no node, is about
// all of them.
func placesOf(f faults.Fault, m checker.Meta) (list []place) {
	links := func(clients, nodes []string) {
		if len(clients) == 0 {
			clients = m.Clients
		}
		if len(nodes) == 0 {
			nodes = m.Nodes
		}
		for _, c := range clients {
			for _, n := range nodes {
				list = append(list, place{c, n})
			}
		}
	}
	switch f := f.(type) {
	case faults.Latency:
		links(f.Clients, f.Nodes)
	case faults.Bandwidth:
		links(f.Clients, f.Nodes)
	case faults.Partition:
		links(f.Clients, f.Nodes)
	case faults.Timeout:
		links(f.Clients, f.Nodes)
	case faults.Heal:
		links(f.Clients, f.Nodes)
	case faults.Delay:
		links(f.Match.Clients, f.Match.Nodes)
	case faults.Clear:
		links(f.Clients, nil)
	default:
		for _, name := range f.Definition().Targets(f) {
			if faults.IsClient(name) {
				list = append(list, place{client: name})
			} else {
				node, _, _ := strings.Cut(name, "/") // of a server
				list = append(list, place{node: node})
			}
		}
	}
	return list
}

// A lasting is an effect and how long it lasts; untilEnded stands for an effect that another fault ends.
type lasting struct {
	effect effect
	lasts  time.Duration
}

const untilEnded time.Duration = -1

// effectsOf returns the effects of a fault. Faults of clients and orders to the gate have none here:
// the history has events for what they do.
func effectsOf(f faults.Fault, ttl time.Duration) []lasting {
	switch f := f.(type) {
	case faults.ClientClock:
		return []lasting{{clientMoves, untilEnded}}
	case faults.Latency:
		if f.Base.Of(ttl)+f.Jitter.Of(ttl) > 0 {
			return []lasting{{cutOff, untilEnded}}
		}
	case faults.Bandwidth:
		if f.Rate != (faults.Rate{}) {
			return []lasting{{cutOff, untilEnded}}
		}
	case faults.Partition, faults.Timeout, faults.Delay:
		return []lasting{{cutOff, untilEnded}}
	case faults.PartitionNodes, faults.CrashNode, faults.PauseNode:
		return []lasting{{unusable, untilEnded}}
	case faults.Full:
		if !f.Off {
			return []lasting{{unusable, untilEnded}}
		}
	case faults.RestartNode:
		if f.Empty {
			return []lasting{{unusable, 0}, {loses, 0}}
		}
		return []lasting{{unusable, 0}}
	case faults.Flush, faults.Evict, faults.Join:
		return []lasting{{loses, 0}}
	case faults.NodeClock:
		if by := f.By.Of(ttl); by < 0 { // a lease that was granted before lasts so much longer
			return []lasting{{moves, 0}, {unusable, -by}}
		}
		return []lasting{{moves, 0}}
	case faults.NodeDrift:
		if f.Rate < 1 {
			return []lasting{{moves, untilEnded}, {unusable, untilEnded}}
		}
		return []lasting{{moves, untilEnded}}
	case faults.Failover: // the old primary may have granted, and the new one does not know
		return []lasting{{fails, 0}, {unusable, 0}}
	case faults.Split:
		return []lasting{{splits, untilEnded}}
	case faults.Replication:
		if f.Mode != faults.ReplicationStart {
			return []lasting{{lagging, untilEnded}}
		}
	}
	return nil
}
