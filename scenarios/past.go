package scenarios

import (
	"fmt"
	"strings"

	"github.com/lockfault/lockfault/faults"
)

// A past is what earlier steps did, as far as it decides which later steps
// make sense. Clients and nodes never share a name.
type past struct {
	anybodyHeld bool
	held        map[string]bool // clients that some hold may stop
	paused      map[string]bool
	crashed     map[string]bool
	split       map[string]bool
	started     map[string]bool // stopwatches
	ahead       *ahead          // of nodes
}

func newPast() past {
	return past{
		held: map[string]bool{}, paused: map[string]bool{}, crashed: map[string]bool{},
		split: map[string]bool{}, started: map[string]bool{},
	}
}

// follow notes a step, or says why it can't come after those before it.
func (p *past) follow(c *cursor, action Action) error {
	switch do := action.(type) {
	case Await:
		if do.State == AwaitHeld {
			return p.stopped(c, do.Clients)
		}
	case Measure:
		if do.Stop && !p.started[do.Name] {
			return c.wrong(c.find(do.Name), "no stopwatch %q was started before this line", sortedKeys(p.started)...)
		}
		p.started[do.Name] = true
	case Inject:
		return p.befall(c, do.Fault)
	}
	return nil
}

// befall is follow for faults.
func (p *past) befall(c *cursor, fault faults.Fault) error {
	if err := p.undo(c, fault); err != nil {
		return err
	}
	if err := p.ahead.befall(fault); err != nil {
		return c.wrong(c.find(faults.NodeOf(fault)), err.Error())
	}
	return nil
}

// undo refuses to undo, or to wait for, what was never done.
func (p *past) undo(c *cursor, fault faults.Fault) error {
	switch fault := fault.(type) {
	case faults.PauseClient:
		p.paused[fault.Client] = true
	case faults.ResumeClient:
		return after(c, p.paused, fault.Client, "paused")
	case faults.CrashClient:
		p.crashed[fault.Client] = true
	case faults.RestartClient:
		return after(c, p.crashed, fault.Client, "crashed")
	case faults.PauseNode:
		p.paused[nodeOf(fault.Node)] = true
	case faults.ResumeNode:
		return after(c, p.paused, fault.Node, "paused")
	case faults.CrashNode:
		p.crashed[nodeOf(fault.Node)] = true
	case faults.RestartNode:
		return after(c, p.crashed, fault.Node, "crashed")
	case faults.Failover: // crashes the primary, which may come back
		p.crashed[nodeOf(fault.Node)] = true
	case faults.Split:
		p.split[fault.Node] = true
	case faults.Join:
		return after(c, p.split, fault.Node, "split")
	case faults.Hold:
		p.anybodyHeld = p.anybodyHeld || len(fault.Match.Clients) == 0
		for _, client := range fault.Match.Clients {
			p.held[client] = true
		}
	case faults.Pass:
		return p.stopped(c, fault.Clients)
	}
	return nil
}

// stopped refuses to wait for, or to pass, what nothing can hold.
func (p *past) stopped(c *cursor, clients []string) error {
	for _, client := range clients {
		if !p.anybodyHeld && !p.held[client] {
			return c.wrong(c.find(client), "no hold before this line stops messages of %q")
		}
	}
	return nil
}

// nodeOf returns the node that a server belongs to, by its name, or the name
// itself: the server of a node that is meant differs from line to line.
func nodeOf(name string) string {
	node, _, _ := strings.Cut(name, "/")
	return node
}

// after refuses to undo what was never done. A node may have been named by its
// number in one line and as the quorum's in the other.
func after(c *cursor, done map[string]bool, name, what string) error {
	if done[nodeOf(name)] || isNode(name) && done[faults.Quorum] {
		return nil
	}
	if name == faults.Quorum {
		for other := range done {
			if isNode(other) {
				return nil
			}
		}
	}
	return c.wrong(c.find(name), fmt.Sprintf("%%q was never %s before this line", what))
}
