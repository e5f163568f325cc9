package scenarios

import (
	"fmt"
	"slices"
	"strings"

	"github.com/lockfault/lockfault/faults"
)

// validator holds the effects of the previous steps that decide which steps can follow. Clients and
// nodes never share a name.
type validator struct {
	held    []faults.Match      // messages that earlier holds may stop
	applied map[string][]string // the targets of earlier faults, by the fault's name
	dead    map[string]int      // clients that crashed and were not restarted, with the line of the crash
	started map[string]place    // stopwatches, with the positions of their starts
	running []string            // stopwatches that run, in the order of their starts
	nodes   *dryRun             // of node faults
}

// place is a position in the script.
type place struct{ line, column int }

func newPast() validator {
	return validator{applied: map[string][]string{}, dead: map[string]int{}, started: map[string]place{}}
}

// follow records a step, or returns an error if it cannot follow the previous steps.
func (p *validator) follow(c *cursor, action Action) error {
	switch do := action.(type) {
	case Call:
		return p.alive(c, do.Clients)
	case Work:
		return p.alive(c, do.Clients)
	case Rounds:
		return p.alive(c, do.Clients)
	case Write:
		return p.alive(c, do.Clients)
	case Await:
		if do.State == AwaitHeld {
			return p.stopped(c, do.Clients, do.Nodes)
		}
	case Measure:
		return p.measure(c, do)
	case Inject:
		return p.fault(c, do.Fault)
	}
	return nil
}

// measure records a stopwatch step. A stopwatch must be stopped before it starts again; otherwise
// its reading would be lost.
func (p *validator) measure(c *cursor, do Measure) error {
	w := c.words[1] // the name may be any word
	at, started := p.started[do.Name]
	i := slices.Index(p.running, do.Name)
	switch {
	case do.Stop && !started:
		return c.wrong(w, "no stopwatch %q was started before this line", sortedKeys(p.started)...)
	case !do.Stop && i >= 0:
		return c.wrong(w, fmt.Sprintf("the stopwatch %%q has run since line %d: stop it first", at.line))
	case do.Stop && i >= 0:
		p.running = slices.Delete(p.running, i, i+1)
	case !do.Stop:
		p.started[do.Name], p.running = place{c.number, w.column}, append(p.running, do.Name)
	}
	return nil
}

// alive returns an error if a client is crashed.
func (p *validator) alive(c *cursor, clients []string) error {
	for _, client := range clients {
		if line, ok := p.dead[client]; ok {
			return c.wrong(c.find(client), fmt.Sprintf("%%q crashed on line %d, and does nothing: restart it first", line))
		}
	}
	return nil
}

// fault is follow for faults.
func (p *validator) fault(c *cursor, fault faults.Fault) error {
	d := fault.Definition()
	target := faults.TargetClient(fault) + faults.TargetNode(fault)
	switch fault := fault.(type) {
	case faults.CrashClient:
		if _, ok := p.dead[target]; !ok {
			p.dead[target] = c.number
		}
	case faults.RestartClient:
		delete(p.dead, target)
	case faults.CancelClient:
		return p.alive(c, []string{target})
	case faults.Hold:
		p.held = append(p.held, fault.Match)
	case faults.Pass:
		return p.stopped(c, fault.Clients, fault.Nodes)
	}
	if len(d.Reverses) > 0 && !p.reversible(d, target) {
		return c.wrong(c.find(target), fmt.Sprintf("%%q was never %s before this line", d.Reversed))
	}
	p.applied[d.Name] = append(p.applied[d.Name], target)
	if err := p.nodes.apply(fault); err != nil {
		return c.wrong(c.find(target), err.Error())
	}
	return nil
}

// reversible reports whether a fault that the definition reverses was applied to the target.
func (p *validator) reversible(d faults.Definition, target string) bool {
	for _, name := range d.Reverses {
		if slices.ContainsFunc(p.applied[name], func(other string) bool { return mayBe(target, other) }) {
			return true
		}
	}
	return false
}

// stopped returns an error unless a previous hold can stop messages of each client, on each of the
// nodes, or on any node if nodes is empty.
func (p *validator) stopped(c *cursor, clients, nodes []string) error {
	for _, client := range clients {
		of := slices.DeleteFunc(slices.Clone(p.held), func(m faults.Match) bool {
			return len(m.Clients) > 0 && !slices.Contains(m.Clients, client)
		})
		if len(of) == 0 {
			return c.wrong(c.find(client), "no hold before this line stops messages of %q")
		}
		for _, node := range nodes {
			on := func(name string) bool { return mayBe(node, name) }
			if !slices.ContainsFunc(of, func(m faults.Match) bool { return len(m.Nodes) == 0 || slices.ContainsFunc(m.Nodes, on) }) {
				return c.wrong(c.find(node), "no hold before this line stops messages of "+client+" on %q")
			}
		}
	}
	return nil
}

// nodeOf returns the node of a server's name, or the name itself.
func nodeOf(name string) string {
	node, _, _ := strings.Cut(name, "/")
	return node
}

// mayBe reports whether two names may refer to the same client, node or server. A node may have its
// number in one line and be the quorum's node in the other, and a node's name may refer to any of
// its servers.
func mayBe(a, b string) bool {
	nodeA, nodeB := nodeOf(a), nodeOf(b)
	switch {
	case a == b:
		return true
	case nodeA == nodeB:
		return nodeA == a || nodeB == b
	}
	return isNode(nodeA) && nodeB == faults.Quorum || nodeA == faults.Quorum && isNode(nodeB)
}
