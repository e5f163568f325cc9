package explore

import (
	"slices"
	"strings"

	"github.com/lockfault/lockfault/checker"
	"github.com/lockfault/lockfault/faults"
)

// A componentKey is the key for the effect of a transition that delivers nothing on one component.
// The key holds everything that this effect can depend on. A component is a client, a node, or what
// all have in common.
type componentKey struct {
	move, faults, common int32
	awaits               int32 // the client that the transition awaits: it alone determines the duration
	kind                 kind
	thing                int32
}

// A kind is the kind of a component.
type kind int8

const (
	ofAll kind = iota
	ofNode
	ofClient
)

// A componentEffect is the effect on such a component. A nil *componentEffect is not known yet.
type componentEffect struct {
	// wide reports that other components were involved after all: something was delivered.
	wide bool
	to   int32
	part pathSegment
}

// spreads reports whether the effect of a transition from p may be independent for each client and
// node. This requires that no server sends anything to a client, and no client watches a server.
func (t *transitionCache) spreads(p *searchNode) bool {
	talks := func(s faults.ServerView) bool { return len(s.Talks) > 0 }
	for _, n := range p.parts.nodes {
		if slices.ContainsFunc(t.nodes.list[n], talks) {
			return false
		}
	}
	return !slices.ContainsFunc(p.parts.clients, func(n int32) bool { return t.clients.list[n].Watches != "" })
}

// singles returns the keys of a transition that spreads: first that of the common components, then
// those of the nodes, then those of the clients.
func (q *searchNode) singles() []componentKey {
	list := make([]componentKey, 0, 1+len(q.from.nodes)+len(q.from.clients))
	awaits := int32(-1)
	for _, line := range q.trail.lines {
		if who, ok := strings.CutPrefix(line, "await "); ok {
			awaits = q.from.clients[who[0]-'A']
		}
	}
	add := func(kind kind, thing, faults int32) {
		list = append(list, componentKey{q.key.move, faults, q.from.common, awaits, kind, thing})
	}
	add(ofAll, 0, 0)
	for _, n := range q.from.nodes {
		add(ofNode, n, q.before[len(q.from.clients)])
	}
	for i, n := range q.from.clients {
		add(ofClient, n, q.before[i])
	}
	return list
}

// spread returns the state to which a transition leads whose effect on each component is known, and
// the parts that it adds to the history. known is false if an effect is not in the tables, and wide
// reports that the effect differs each time.
func (t *transitionCache) spread(list []componentKey, nodes int) (to parts, added []*pathSegment, known, wide bool) {
	for i, key := range list {
		f := t.componentEffects[key]
		if f == nil {
			return to, nil, false, false
		}
		wide = wide || f.wide
		added = append(added, &f.part)
		switch {
		case i == 0:
			to.common = f.to
		case i <= nodes:
			to.nodes = append(to.nodes, f.to)
		default:
			to.clients = append(to.clients, f.to)
		}
	}
	return to, added, true, wide
}

// learnSpread records the effects of such a transition on each component.
func (t *transitionCache) learnSpread(list []componentKey, from, to parts, part Part) {
	a, b := t.commons.list[from.common], t.commons.list[to.common]
	changed := a.seen != b.seen || a.owners != b.owners
	for i, key := range list {
		if t.componentEffects[key] != nil {
			continue
		}
		f := &componentEffect{to: to.common}
		name := ""
		switch n := i - 1; {
		case key.kind == ofNode:
			f.to, name = to.nodes[n], nameOf(t.nodes.list[key.thing])
		case key.kind == ofClient:
			f.to, name = to.clients[n-len(to.nodes)], t.clients.list[key.thing].Name
		default:
			f.wide = changed
		}
		f.part.Part = part.of(name)
		f.wide = f.wide || slices.ContainsFunc(f.part.Events, delivers)
		if t.componentEffects == nil {
			t.componentEffects = map[componentKey]*componentEffect{}
		}
		t.componentEffects[key] = f
	}
}

// together merges the parts that a transition adds to the history for each client and node.
func together(parts []*pathSegment) Part {
	whole := Part{Steps: make([]int, len(parts[0].Steps)), Took: parts[0].Took}
	for i := range whole.Steps {
		from := len(whole.Events)
		whole.Steps[i] = from
		for _, part := range parts {
			upto := len(part.Events)
			if i+1 < len(part.Steps) {
				upto = part.Steps[i+1]
			}
			whole.Events = append(whole.Events, part.Events[part.Steps[i]:upto]...)
		}
		arrange(whole.Events[from:])
	}
	return whole
}

// delivers reports whether an event shows an interaction between a client and a node.
func delivers(e checker.Event) bool {
	return e.Kind == checker.Request || e.Kind == checker.State && e.Client != ""
}

// of returns the events of a part that belong to the client or node with the given name; "" for
// events without either.
func (p Part) of(name string) Part {
	one := Part{Took: p.Took, Steps: make([]int, len(p.Steps))}
	step := 0
	for i, e := range p.Events {
		for ; step < len(p.Steps) && p.Steps[step] <= i; step++ {
			one.Steps[step] = len(one.Events)
		}
		if ownerName(e) == name {
			one.Events = append(one.Events, e)
		}
	}
	for ; step < len(p.Steps); step++ {
		one.Steps[step] = len(one.Events)
	}
	return one
}
