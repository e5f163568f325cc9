package explore

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/lockfault/lockfault/faults"
	"github.com/lockfault/lockfault/internal/harness"
)

// The effect of a transition is cached. A client is a function of what it has observed, and a
// server of what it stores. A transition of one client, which sends at most one request to one
// node, therefore has the same effect wherever this client and this node are in the same state,
// whatever the states of the others. Likewise, when time passes or a fault happens while no message
// arrives anywhere, the effect on each client and node is independent of the others. The tables
// hold these effects, and a state is a tuple of indexes into the tables.

// parts is a state split into components, each given by its index in the tables. Its slices are
// immutable.
type parts struct {
	common         int32
	nodes, clients []int32
}

func (p parts) equal(q parts) bool {
	return p.common == q.common && slices.Equal(p.nodes, q.nodes) && slices.Equal(p.clients, q.clients)
}

// common holds the components of a state that belong to no single client or node.
type common struct {
	now    time.Duration
	seen   int64
	owners string
}

// A node is the snapshot of a node, with its servers.
type node []faults.ServerView

// nameOf returns the name of the node to which servers belong.
func nameOf(servers []faults.ServerView) string {
	name, _, _ := strings.Cut(servers[0].Name, "/")
	return name
}

// A client is the snapshot of a client, with its messages that the gate holds.
type client struct {
	harness.ClientView
	held, unread []faults.HeldView
	wrote        int
}

// A transitionCache holds the known effects of transitions. The zero value is empty and ready for
// use.
type transitionCache struct {
	commons          interner[common]
	nodes            interner[node]
	clients          interner[client]
	words            map[string]int32 // the lines of a transition, or faults that happened before it
	lines            map[int32][]string
	effects          map[local]*effect
	componentEffects map[componentKey]*componentEffect
}

// local is the key of a transition of one client: everything that its effect can depend on.
type local struct {
	move                 int32
	faults               [2]int32 // the faults that can affect the client, and those that can affect nodes
	common, client, node int32    // node is -1 if nothing is sent; a value below -1 stands for several nodes
	who                  int8
}

// An effect is the effect of such a transition. A nil *effect is not known yet.
type effect struct {
	// wide reports that the transition did more than the effect shows: time passed, or another
	// client or node changed. The effect then differs each time, and must be played.
	wide           bool
	common, client int32
	nodes          []int32
	part           pathSegment
}

// parts splits a snapshot into components.
func (t *transitionCache) parts(v harness.Snapshot) parts {
	p := parts{common: t.commons.index(common{v.Now, v.Seen, v.Owners})}
	for rest := v.Servers; len(rest) > 0; {
		name := nameOf(rest)
		n := 1
		for n < len(rest) && strings.HasPrefix(rest[n].Name, name+"/") {
			n++
		}
		p.nodes, rest = append(p.nodes, t.nodes.index(rest[:n:n])), rest[n:]
	}
	for _, c := range v.Clients {
		c := client{ClientView: c, wrote: v.Wrote[c.Name]}
		others := func(m faults.HeldView) bool { return m.Client != c.Name }
		c.held = slices.DeleteFunc(slices.Clone(v.Held), others)
		c.unread = slices.DeleteFunc(slices.Clone(v.Unread), others)
		p.clients = append(p.clients, t.clients.index(c))
	}
	return p
}

// view assembles the snapshot again. Messages are ordered by client.
func (t *transitionCache) view(p parts) harness.Snapshot {
	in := t.commons.list[p.common]
	v := harness.Snapshot{Now: in.now, Seen: in.seen, Clients: t.people(p)}
	v.Owners = in.owners
	for _, n := range p.nodes {
		v.Servers = append(v.Servers, t.nodes.list[n]...)
	}
	for _, n := range p.clients {
		v.Held = append(v.Held, t.clients.list[n].held...)
		v.Unread = append(v.Unread, t.clients.list[n].unread...)
	}
	return v
}

// people returns the snapshots of the clients.
func (t *transitionCache) people(p parts) []harness.ClientView {
	list := make([]harness.ClientView, len(p.clients))
	for i, n := range p.clients {
		list[i] = t.clients.list[n].ClientView
	}
	return list
}

// index returns the index of a text, from 1; 0 for the empty text.
func (t *transitionCache) index(words string) int32 {
	if words == "" {
		return 0
	}
	n, ok := t.words[words]
	if !ok {
		if t.words == nil {
			t.words = map[string]int32{}
		}
		n = int32(len(t.words)) + 1
		t.words[words] = n
	}
	return n
}

// same returns the lines of the transition with the given index. All calls share the same slice,
// because paths keep it.
func (t *transitionCache) same(move int32, lines []string) []string {
	same, ok := t.lines[move]
	if !ok {
		if t.lines == nil {
			t.lines = map[int32][]string{}
		}
		t.lines[move], same = lines, lines
	}
	return same
}

// memory returns the indexes of the faults that can affect each client, and last of those that can
// affect nodes. Faults of a client affect no other client.
func (t *transitionCache) memory(clients, faults []string) []int32 {
	list := make([]int32, 0, len(clients)+1)
	for _, name := range append(slices.Clip(clients), "") {
		list = append(list, t.index(strings.Join(slices.DeleteFunc(slices.Clone(faults), func(fault string) bool {
			words := strings.Fields(fault)
			about := func(client string) bool { return slices.Contains(words, client) }
			return slices.ContainsFunc(clients, about) && !slices.Contains(words, name)
		}), "\n")))
	}
	return list
}

// differs describes the first component in which two states differ; "" if there is none.
func (t *transitionCache) differs(got, want parts) string {
	for i, n := range got.clients {
		if now, then := &t.clients.list[n], &t.clients.list[want.clients[i]]; n != want.clients[i] {
			return fmt.Sprintf("%s came to %s, where it had come to %s", now.Name, now, then)
		}
	}
	for i, n := range got.nodes {
		if n != want.nodes[i] {
			return fmt.Sprintf("%s came to hold something else", nameOf(t.nodes.list[n]))
		}
	}
	if got.common != want.common {
		now, then := t.commons.list[got.common], t.commons.list[want.common]
		return fmt.Sprintf("it was %v, where it had been %v; known of values was %q, and had been %q", now.now, then.now, now.owners, then.owners)
	}
	return ""
}

// String describes the visible state of a client.
func (c *client) String() string {
	var words []string
	for word, is := range map[string]bool{"crashed": c.Crashed, "paused": c.Paused, "busy": c.Busy, "holding": c.Holding} {
		if is {
			words = append(words, word)
		}
	}
	slices.Sort(words)
	for _, m := range c.held {
		words = append(words, m.Command)
	}
	if len(words) == 0 {
		return "nothing, but by another way"
	}
	return strings.Join(words, ", ")
}

// at returns the key of a transition from p, and the indexes of the nodes concerned; ok is false if
// the effect may depend on anything else.
func (t *transitionCache) at(p *searchNode, m move) (key local, nodes []int, ok bool) {
	key = local{common: p.parts.common, node: -1, move: t.index(strings.Join(m.lines, "\n"))}
	if m.client == 0 {
		return key, nil, false
	}
	who := m.client - 1
	key.who, key.client = int8(who), p.parts.clients[who]
	key.faults = [2]int32{p.memory[who], p.memory[len(p.memory)-1]}
	if !m.sends {
		return key, nil, true
	}
	for at, n := range p.parts.nodes {
		name := nameOf(t.nodes.list[n])
		if m.to != anywhere && m.to != name {
			continue
		}
		// The node may send something to other clients because of the request, or other clients
		// watch the node.
		for i, n := range p.parts.clients {
			other := &t.clients.list[n]
			talks := func(s faults.ServerView) bool { return slices.Contains(s.Talks, other.Name) }
			if i != who && (other.Watches == name || slices.ContainsFunc(t.nodes.list[p.parts.nodes[at]], talks)) {
				return local{move: key.move}, nil, false
			}
		}
		nodes = append(nodes, at)
	}
	switch list := at(p.parts.nodes, nodes); len(list) {
	case 0:
		return local{move: key.move}, nil, false
	case 1:
		key.node = list[0]
	default:
		key.node = -1 - t.index(fmt.Sprint(list))
	}
	return key, nodes, true
}

// learn records the effect of a transition from one state to another.
func (t *transitionCache) learn(key local, nodes []int, from, to parts, part Part) {
	e := &effect{common: to.common, client: to.clients[key.who], nodes: at(to.nodes, nodes), part: pathSegment{Part: part}}
	back := parts{from.common, with(to.nodes, nodes, at(from.nodes, nodes)), with(to.clients, []int{int(key.who)}, []int32{key.client})}
	e.wide = t.commons.list[from.common].now != t.commons.list[to.common].now || !back.equal(from)
	if t.effects == nil {
		t.effects = map[local]*effect{}
	}
	t.effects[key] = e
}

// apply returns the state to which the transition leads from another state.
func (e *effect) apply(key local, nodes []int, from parts) parts {
	return parts{e.common, with(from.nodes, nodes, e.nodes), with(from.clients, []int{int(key.who)}, []int32{e.client})}
}

// at returns the elements of a list at the given indexes.
func at(list []int32, places []int) []int32 {
	there := make([]int32, len(places))
	for i, place := range places {
		there[i] = list[place]
	}
	return there
}

// with returns the list with the elements at the given indexes replaced. The original is not
// changed.
func with(list []int32, places []int, numbers []int32) []int32 {
	if slices.Equal(at(list, places), numbers) {
		return list
	}
	list = slices.Clone(list)
	for i, place := range places {
		list[place] = numbers[i]
	}
	return list
}
