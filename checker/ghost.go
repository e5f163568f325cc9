package checker

import (
	"fmt"
	"sort"
)

// ghostKey is a key that a failed acquire left on a server: an ownership that began with a command
// of the client that called the acquire.
type ghostKey struct {
	call, ownership int
	proof           int // the Return, or the State if the State came later
}

// ghosts returns all ghost keys in the order of their proofs.
func (f *index) ghosts() []ghostKey {
	var found []ghostKey
	for at, o := range f.ownerships {
		if o.by != o.client {
			continue
		}
		c, underWay := f.acquiring(f.clients[o.client], o.begin)
		if c < 0 {
			continue
		}
		switch ret := &f.calls[c]; {
		case ret.result != Fail || ret.hold >= 0 || f.before(o.begin, ret):
		case underWay && o.end > ret.end && f.holdAt(o.client, ret.end) == nil:
			found = append(found, ghostKey{c, at, ret.end})
		case !underWay:
			found = append(found, ghostKey{c, at, o.begin})
		}
	}
	sort.SliceStable(found, func(a, b int) bool { return found[a].proof < found[b].proof })
	return found
}

// before reports whether the command that made the change at event at was sent before the call
// began. Such a change is an effect of an earlier call.
func (f *index) before(at int, c *call) bool {
	sent, known := f.setOut(at)
	return known && sent < c.from
}

// Ghost: see [Descriptions].
const Ghost Anomaly = "ghost"

var ghostEntry = Description{
	Name: Ghost, Letter: "G", Short: "ghost", Class: Hygiene,
	Meaning:    "acquire reported failure, yet left the key with the caller",
	ServerSide: true,
	find:       ghost,
}

// ghost finds the acquires that reported failure and left the key with their client.
func ghost(f *index, yield func(*Witness) bool) {
	for _, g := range f.ghosts() {
		if !yield(f.ghostWitness(g)) {
			return
		}
	}
}

func (f *index) ghostWitness(g ghostKey) *Witness {
	c := &f.calls[g.call]
	o := f.ownerships[g.ownership]
	node := f.servers[o.server].node
	says := fmt.Sprintf("%s's %s failed at %s, yet the key on %s had been %[1]s's since %[5]s.",
		f.name(c.client), c.op, seconds(c.to), node, seconds(f.events[o.begin].Time))
	if o.begin > c.end {
		says = fmt.Sprintf("%s's %s failed at %s, yet at %s the key on %s became %[1]s's.",
			f.name(c.client), c.op, seconds(c.to), seconds(f.events[o.begin].Time), node)
	}
	return witness(says, o.begin, c.end)
}
