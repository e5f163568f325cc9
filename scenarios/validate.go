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
	held    []faults.Match // messages that earlier holds may stop
	paused  map[string]bool
	crashed map[string]bool
	dead    map[string]int // clients that crashed and were not restarted, with the line of the crash
	split   map[string]bool
	started map[string]place // stopwatches, with the positions of their starts
	running []string         // stopwatches that run, in the order of their starts
	ahead   *dryRun          // of nodes
}

// place is a position in the script.
type place struct{ line, column int }

func newPast() validator {
	return validator{
		paused: map[string]bool{}, crashed: map[string]bool{}, dead: map[string]int{},
		split: map[string]bool{}, started: map[string]place{},
	}
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
		return p.befall(c, do.Fault)
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

// befall is follow for faults.
func (p *validator) befall(c *cursor, fault faults.Fault) error {
	if err := p.undo(c, fault); err != nil {
		return err
	}
	if err := p.ahead.befall(fault); err != nil {
		return c.wrong(c.find(faults.TargetNode(fault)), err.Error())
	}
	return nil
}

// undo returns an error for a fault that undoes, or waits for, an action that no previous step did.
func (p *validator) undo(c *cursor, fault faults.Fault) error {
	switch fault := fault.(type) {
	case faults.PauseClient:
		p.paused[fault.Client] = true
	case faults.ResumeClient:
		return after(c, p.paused, fault.Client, "paused")
	case faults.CrashClient:
		p.crashed[fault.Client] = true
		if _, ok := p.dead[fault.Client]; !ok {
			p.dead[fault.Client] = c.number
		}
	case faults.RestartClient:
		delete(p.dead, fault.Client)
		return after(c, p.crashed, fault.Client, "crashed")
	case faults.CancelClient:
		return p.alive(c, []string{fault.Client})
	case faults.PauseNode:
		p.paused[fault.Node] = true
	case faults.ResumeNode:
		return after(c, p.paused, fault.Node, "paused")
	case faults.CrashNode:
		p.crashed[fault.Node] = true
	case faults.RestartNode:
		return after(c, p.crashed, fault.Node, "crashed")
	case faults.Failover: // crashes the primary, which may be restarted
		p.crashed[fault.Node] = true
	case faults.Split:
		p.split[fault.Node] = true
	case faults.Join:
		return after(c, p.split, fault.Node, "split")
	case faults.Hold:
		p.held = append(p.held, fault.Match)
	case faults.Pass:
		return p.stopped(c, fault.Clients, fault.Nodes)
	}
	return nil
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

// after returns an error unless the action to undo was done before.
func after(c *cursor, done map[string]bool, name, what string) error {
	for other := range done {
		if mayBe(name, other) {
			return nil
		}
	}
	return c.wrong(c.find(name), fmt.Sprintf("%%q was never %s before this line", what))
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
