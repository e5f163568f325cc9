package faults

import (
	"slices"
	"sync"
)

// all lists one fault of each kind, ordered by target: clients, links, nodes, gate.
func all() []Fault {
	return []Fault{
		PauseClient{}, ResumeClient{}, CrashClient{}, RestartClient{}, CancelClient{}, ClientClock{},
		Latency{}, Bandwidth{}, Partition{}, Timeout{}, Heal{}, PartitionNodes{}, HealNodes{},
		CrashNode{}, RestartNode{}, PauseNode{}, ResumeNode{}, Flush{}, Evict{}, ScriptFlush{}, Full{}, NodeClock{}, NodeDrift{},
		Failover{}, Split{}, Join{}, Replication{},
		Hold{}, Delay{}, Drop{}, Reset{}, Pass{}, Clear{},
	}
}

// definitions is the table in the order of all. It is computed once, because parsers look up every
// line of a script in it, and must not be changed.
var definitions = sync.OnceValue(func() []Definition {
	var list []Definition
	for _, f := range all() {
		list = append(list, f.Definition())
	}
	return list
})

// Definitions returns the definition of each fault and each order to the gate, ordered by target:
// clients, links, nodes, gate. The caller owns the slice.
func Definitions() []Definition { return slices.Clone(definitions()) }

// Words returns the words of the faults with one of the targets, without repetition.
func Words(targets ...Target) []string {
	var words []string
	for i := range definitions() {
		d := &definitions()[i]
		if slices.Contains(targets, d.Target) && !slices.Contains(words, d.Word) {
			words = append(words, d.Word)
		}
	}
	return words
}

// NodeSearches returns the transitions with which a search injects faults of nodes, in the order of
// the table.
func NodeSearches() (list []Searched) {
	for i := range definitions() {
		list = append(list, definitions()[i].Searched...)
	}
	return list
}

// DefinitionOf returns the definition of the fault that a line of a script applies, or ok false if
// the line applies no fault. DefinitionOf reads only the names at the beginning of the line and the
// fault's word; the rest may be invalid.
func DefinitionOf(words []string) (d Definition, ok bool) {
	named := slices.IndexFunc(words, func(word string) bool { return !IsClient(word) && !IsNode(word) })
	if named < 0 {
		return d, false
	}
	for i := range definitions() {
		if d := &definitions()[i]; d.Word == words[named] && d.matches(words, named) {
			return *d, true
		}
	}
	return d, false
}

// matches reports whether a line of the definition's word is about its targets. The first words of
// the line are names.
func (d *Definition) matches(words []string, names int) bool {
	switch d.Target {
	case OnClient:
		return names > 0 && IsClient(words[0])
	case OnNode, OnServer:
		return names > 0 && IsNode(words[0])
	}
	nodes := len(words) > 1 && IsNode(words[1])
	switch {
	case names > 0:
		return false
	case d.Target == BetweenNodes:
		return nodes
	case d.Target == OnLinks: // the same word may be about links between nodes
		between := slices.ContainsFunc(definitions(), func(o Definition) bool { return o.Target == BetweenNodes && o.Word == d.Word })
		return !nodes || !between
	}
	return true
}

// Targets returns the names of the clients, nodes and servers that the fault is about: those before
// its word, or the first lists after it.
func (d Definition) Targets(f Fault) []string {
	var names []string
	for _, field := range d.Fields(f) {
		switch v := field.Value.(type) {
		case TargetField:
			return []string{*v.To}
		case ClientsField:
			names = append(names, *v.To...)
		case NodesField:
			if field.Keyword == "" {
				names = append(names, *v.To...)
			}
		}
	}
	return names
}

// TargetClient returns the client whose process the fault targets; empty for other faults.
func TargetClient(f Fault) string {
	if d := f.Definition(); d.Target == OnClient {
		return d.Targets(f)[0]
	}
	return ""
}

// TargetNode returns the node, or server, that the fault targets; empty for other faults. The name
// may be [Quorum].
func TargetNode(f Fault) string {
	if d := f.Definition(); d.Target == OnNode || d.Target == OnServer {
		return d.Targets(f)[0]
	}
	return ""
}

// AreBetweenNodes reports whether the fault changes links between nodes. Such a fault is possible
// only if the nodes are members of a cluster.
func AreBetweenNodes(f Fault) bool { return f != nil && f.Definition().Target == BetweenNodes }
