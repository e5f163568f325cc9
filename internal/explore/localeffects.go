package explore

import (
	"slices"
	"strings"

	"github.com/lockfault/lockfault/checker"
	"github.com/lockfault/lockfault/faults"
)

// componentKey is all that what becomes of one client or node can depend on in a move that
// delivers nothing, or of what all have in common.
type componentKey struct {
	move, faults, common int32
	awaits               int32 // the client for which the move waits: how long, only that one knows
	kind                 kind
	thing                int32
}

// kind says on which shelf a thing is.
type kind int8

const (
	ofAll kind = iota
	ofNode
	ofClient
)

// componentEffect is what becomes of it. It is nil while that is not known.
type componentEffect struct {
	// wide says that it had to do with others: something was delivered after all.
	wide bool
	to   int32
	part pathSegment
}

// spreads reports whether a move from a position may be one that does what it does to each
// client and node by itself: no server has something to say to anybody.
func (t *transitionCache) spreads(p *searchNode) bool {
	talks := func(s faults.ServerView) bool { return len(s.Talks) > 0 }
	for _, n := range p.parts.nodes {
		if slices.ContainsFunc(t.nodes.list[n], talks) {
			return false
		}
	}
	return !slices.ContainsFunc(p.parts.clients, func(n int32) bool { return t.clients.list[n].Watches != "" })
}

// singles returns by what a move that spreads is looked up: first what all have in
// common, then nodes, then clients.
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

// spread returns where a move leads that does what it does to each by itself, and what it
// adds to the history; known is false while that isn't known, and wide says that it
// is another move each time.
func (t *transitionCache) spread(list []componentKey, nodes int) (to parts, added []*pathSegment, known, wide bool) {
	for i, key := range list {
		f := t.fates[key]
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

// learnSpread takes note of what such a move did to each.
func (t *transitionCache) learnSpread(list []componentKey, from, to parts, part Part) {
	a, b := t.commons.list[from.common], t.commons.list[to.common]
	changed := a.seen != b.seen || a.owners != b.owners
	for i, key := range list {
		if t.fates[key] != nil {
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
		if t.fates == nil {
			t.fates = map[componentKey]*componentEffect{}
		}
		t.fates[key] = f
	}
}

// together returns what a move adds to the history that is known for each client and node by itself.
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

// delivers reports whether an event shows that a client had to do with a node.
func delivers(e checker.Event) bool {
	return e.Kind == checker.Request || e.Kind == checker.State && e.Client != ""
}

// of returns what of a part happened to somebody.
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
