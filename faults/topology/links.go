package topology

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/lockfault/lockfault/faults"
)

// Link is the network path between a client, or a following server, and a node.
type Link struct{ Client, Node string }

// anyone is the client name of links that hold the settings for future clients.
const anyone = ""

// LinkState is the state of a link. The zero value delays and loses nothing.
type LinkState struct {
	// Base is the one-way delay of a message, plus or minus up to Jitter.
	Base, Jitter time.Duration
	// Bandwidth is in bytes per second; 0 is unlimited.
	Bandwidth float64
	// Cut states that messages are lost. Closes is how long a connection stays open during the cut;
	// 0 means that connections stay open and new ones cannot be made.
	Cut    bool
	Closes time.Duration
}

// Links holds the state of every link. Its zero value is not ready for use. Links is not safe for
// concurrent use, except as Arrives states.
type Links struct {
	seed  uint64
	plain LinkState // of a link that no fault has named
	roads map[Link]LinkState
}

func newLinks(cfg Config) Links {
	return Links{seed: cfg.Seed, plain: LinkState{Base: cfg.Base, Jitter: cfg.Jitter}, roads: map[Link]LinkState{}}
}

// Free reports whether the link delays nothing.
func (r LinkState) Free() bool { return r.Base == 0 && r.Jitter == 0 && r.Bandwidth == 0 }

// On returns the state of a link.
func (l *Links) On(on Link) LinkState {
	if road, ok := l.roads[on]; ok {
		return road
	}
	return l.plain
}

// join applies the settings for all clients to a new client.
func (l *Links) join(client string, nodes []*Node) {
	for _, n := range nodes {
		if road, ok := l.roads[Link{anyone, n.Name}]; ok {
			l.roads[Link{client, n.Name}] = road
		}
	}
}

func (t *Topology) applyToLinks(f faults.Fault) error {
	ttl := t.cfg.TTL
	var clients, nodes []string
	var change func(*LinkState)
	done := func(on []Link) error { return t.driver.Reshape(on) }
	cut := func(on []Link) error { t.driver.Cut(on); return nil }
	mend := func(on []Link) error { t.driver.Mend(on); return nil }
	switch f := f.(type) {
	case faults.Latency:
		clients, nodes = f.Clients, f.Nodes
		change = func(r *LinkState) { r.Base, r.Jitter = f.Base.Of(ttl), f.Jitter.Of(ttl) }
	case faults.Bandwidth:
		clients, nodes = f.Clients, f.Nodes
		change = func(r *LinkState) { r.Bandwidth = f.Rate.PerSecond(ttl) }
	case faults.Partition:
		clients, nodes, done = f.Clients, f.Nodes, cut
		change = func(r *LinkState) { r.Cut, r.Closes = true, 0 }
	case faults.Timeout:
		clients, nodes, done = f.Clients, f.Nodes, cut
		change = func(r *LinkState) { r.Cut, r.Closes = true, f.After.Of(ttl) }
	case faults.Heal:
		clients, nodes, done = f.Clients, f.Nodes, mend
		change = func(r *LinkState) { r.Cut, r.Closes = false, 0 }
	default:
		return fmt.Errorf("%q: %w", f, faults.ErrUnsupported)
	}
	t.record(f, "", "")
	var changed []Link
	for _, on := range t.selected(clients, nodes) {
		road := t.Links.On(on)
		was := road.Cut
		change(&road)
		t.Links.roads[on] = road
		if _, heal := f.(faults.Heal); !heal || was {
			changed = append(changed, on)
		}
	}
	if heal, ok := f.(faults.Heal); ok && len(heal.Clients) == 0 && len(heal.Nodes) == 0 {
		return errors.Join(done(changed), t.mendNodes(t.pairs(nil, nil)))
	}
	return done(changed)
}

// selected returns the links that the lists select, in their order. An empty list means all; an
// empty list of clients also selects the link of anyone, for future clients.
func (t *Topology) selected(clients, nodes []string) (list []Link) {
	if len(clients) == 0 {
		clients = append(slices.Sorted(maps.Keys(t.clients)), anyone)
	}
	if len(nodes) == 0 {
		for _, n := range t.Nodes {
			nodes = append(nodes, n.Name)
		}
	}
	for _, c := range clients {
		for _, n := range faults.ResolveNodes(nodes, t.cfg.Nodes) {
			list = append(list, Link{c, n})
		}
	}
	return list
}

// Pair is two nodes that communicate with each other, in the order of [Topology.Nodes].
type Pair struct{ A, B string }

// applyBetween applies a fault of the links between nodes. applyBetween fails if the nodes are not
// peers.
func (t *Topology) applyBetween(f faults.Fault) error {
	if !t.cfg.Peers {
		return fmt.Errorf("%q: %w: these nodes don't talk to one another", f, faults.ErrUnsupported)
	}
	if f, ok := f.(faults.PartitionNodes); ok && len(t.pairs(f.Nodes, f.From)) == 0 {
		return impossible(f, "no node can be cut off from itself")
	}
	t.record(f, "", "")
	switch f := f.(type) {
	case faults.PartitionNodes:
		pairs := t.pairs(f.Nodes, f.From)
		for _, pair := range pairs {
			t.apart[pair] = true
		}
		return t.driver.CutNodes(pairs)
	case faults.HealNodes:
		return t.mendNodes(t.pairs(f.Nodes, f.From))
	}
	return nil
}

// Together reports whether the node and the running nodes that it reaches form a majority.
func (t *Topology) Together(node *Node) bool {
	reached := 0
	for _, n := range t.Nodes {
		apart := t.apart[Pair{n.Name, node.Name}] || t.apart[Pair{node.Name, n.Name}]
		if n == node || !apart && n.Primary.Up && !n.Primary.Paused {
			reached++
		}
	}
	return reached > len(t.Nodes)/2
}

// mendNodes restores those of the pairs that are cut.
func (t *Topology) mendNodes(pairs []Pair) error {
	pairs = slices.DeleteFunc(pairs, func(p Pair) bool { return !t.apart[p] })
	if len(pairs) == 0 {
		return nil
	}
	for _, pair := range pairs {
		delete(t.apart, pair)
	}
	return t.driver.MendNodes(pairs)
}

// pairs returns the pairs of a node in nodes and a node in from, each pair once and in the order of
// [Topology.Nodes]. An empty list means all nodes.
func (t *Topology) pairs(nodes, from []string) (list []Pair) {
	among := func(names []string, n *Node) bool {
		return len(names) == 0 || slices.Contains(faults.ResolveNodes(names, t.cfg.Nodes), n.Name)
	}
	for i, a := range t.Nodes {
		for _, b := range t.Nodes[i+1:] {
			if among(nodes, a) && among(from, b) || among(nodes, b) && among(from, a) {
				list = append(list, Pair{a.Name, b.Name})
			}
		}
	}
	return list
}

// Line is one direction of a connection with limited bandwidth. The zero value is idle.
type Line struct{ busy time.Time }

// carry occupies the line for size bytes as soon as it is idle, and returns when it is idle again.
// rate is in bytes per second; 0 is unlimited and does not occupy the line.
func (l *Line) carry(from time.Time, size int, rate float64) time.Time {
	if rate == 0 {
		return from
	}
	if l.busy.After(from) {
		from = l.busy
	}
	takes := math.Round(float64(size) / rate * float64(time.Second))
	l.busy = from.Add(time.Duration(min(takes, float64(Century))))
	return l.busy
}

// Century is a practically unlimited duration that can be added to a time without overflow.
const Century = 100 * 365 * 24 * time.Hour

// JitterKey identifies a message for the choice of its jitter: its link, kind, command and send
// time.
type JitterKey struct {
	On            Link
	What, Command string
	Sent          time.Duration
}

// Arrives returns when a message of size bytes arrives that is sent at from on a line of the link
// road. Arrives changes only the line, so different goroutines may call it for different lines.
func (l *Links) Arrives(road LinkState, on *Line, d JitterKey, from time.Time, size int) time.Time {
	return on.carry(from, size, road.Bandwidth).Add(max(0, road.Base+l.Jitter(road.Jitter, d)))
}

// Jitter returns a duration in [-most, +most], or 0 if most is not positive. The duration is a hash
// of the seed, the message's identity and its send time. A stream of random numbers would not do:
// two goroutines that send at one instant could swap their draws.
func (l *Links) Jitter(most time.Duration, d JitterKey) time.Duration {
	if most <= 0 {
		return 0
	}
	// FNV-1a, written out because hash/fnv allocates and this function runs for every message.
	x := uint64(14695981039346656037)
	add := func(c byte) { x = (x ^ uint64(c)) * 1099511628211 }
	number := func(v uint64) {
		for i := range 8 {
			add(byte(v >> (8 * i)))
		}
	}
	text := func(s string) {
		for i := range len(s) {
			add(s[i])
		}
	}
	number(l.seed)
	text(d.On.Client)
	add(0)
	text(d.On.Node)
	add(0)
	text(d.What)
	text(d.Command)
	number(uint64(d.Sent))
	// FNV leaves the high bits of short inputs weak: mix once more with the finalizer of SplitMix64
	// (Steele, Lea, Flood 2014).
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	x ^= x >> 31
	return time.Duration(x%uint64(2*most+1)) - most
}
