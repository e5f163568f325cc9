package explore

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"slices"
	"strings"
)

// A search can be split into shards, for several machines. Each path belongs to one shard, or,
// while it is short, to all shards: all shards explore it. A path is assigned to a shard at its
// first fault, or when client A, which begins first, has made undrawn transitions. The assignment
// is a hash of the transition and of the state, as far as states record what led to them. All
// shards therefore compute the same assignment, and two paths that lead to the same state nearly
// always belong to the same shard, so that no two shards explore its continuation.

// undrawn is the number of transitions of A before a path is assigned. A small number gives few
// distinct assignments, and a large one leaves much work to all shards.
const undrawn = 3

// A shardAssignment records which shards explore a path, and the position of the path in the order
// of a whole search.
type shardAssignment struct {
	before *shardAssignment
	nth    int32 // number of the transition among those from the node before
	drawn  bool  // the path belongs to this shard alone
	moves  int8  // number of transitions of A; irrelevant once drawn
}

// Counts are the counts of a search, or of the part of a search that every shard repeats, as in
// [Result].
type Counts struct {
	States int `json:"states"`
	Ends   int `json:"ends"`
	Merged int `json:"merged"`
	Moves  int `json:"moves"`
}

// class returns the part of an assignment that belongs to the identity of a state. Two paths with
// different classes are not merged even if they lead to equal states: one path may leave to another
// shard what the other path does not.
func (l *shardAssignment) class() int {
	if l.drawn {
		return 0
	}
	return 1 + int(l.moves)
}

// course returns the numbers of the transitions that led to the node.
func (l *shardAssignment) course() []int {
	if l == nil {
		return nil
	}
	var list []int
	for ; l.before != nil; l = l.before {
		list = append(list, int(l.nth))
	}
	slices.Reverse(list)
	return list
}

// shared increments a count of the part that every shard repeats, if the node belongs to that part.
func (s *search) shared(p *searchNode, count *int) {
	if p.shards != nil && !p.shards.drawn {
		*count++
	}
}

// deal removes the nodes that belong to other shards. The last len(moves) nodes of list are the
// results of moves; the node before them may be the closing node of p.
func (s *search) deal(p *searchNode, moves []move, list []*searchNode) []*searchNode {
	if p.shards == nil {
		return list
	}
	first := len(list) - len(moves)
	if first > 0 && list[first-1].closed && list[first-1].trail.before == p.trail {
		list[first-1].shards = &shardAssignment{before: p.shards, drawn: p.shards.drawn, moves: p.shards.moves}
	}
	kept := list[:first]
	for i, m := range moves {
		q := list[first+i]
		l := *p.shards
		l.before, l.nth = p.shards, int32(i+1)
		if !l.drawn {
			drawn, shard := s.draw(p, m)
			if drawn && shard != s.bound.Shard {
				continue
			}
			l.drawn = drawn
			if m.client == 1 {
				l.moves++
			}
		}
		q.shards = &l
		kept = append(kept, q)
	}
	return kept
}

// draw reports whether a transition assigns the path to a shard, and returns the shard, from 1.
func (s *search) draw(p *searchNode, m move) (drawn bool, shard int) {
	var text strings.Builder
	show := func(client int) {
		fmt.Fprintf(&text, "%+v\n", s.tables.clients.list[p.parts.clients[client]])
	}
	switch {
	case m.cost == "": // neither a fault nor a transition that prepares one
		if m.client != 1 || p.shards.moves < undrawn {
			return false, 0
		}
		show(0)
	default:
		text.WriteString(strings.Join(m.lines, "\n"))
		text.WriteByte('\n')
		if who := s.affectedClient(m); who >= 0 {
			show(who)
			break
		}
		for i := range p.parts.clients {
			show(i)
		}
	}
	sum := sha256.Sum256([]byte(text.String()))
	return true, 1 + int(binary.BigEndian.Uint64(sum[:])%uint64(s.bound.Shards))
}

// affectedClient returns the index of the client that a fault affects, or -1. It is -1 if the order of the
// fault and the transitions of other clients may matter.
func (s *search) affectedClient(m move) int {
	switch m.cost {
	case LoseReply, LoseRequest:
		return m.client - 1
	case Crash, ClientRestart, ClientClock:
		who, _, _ := strings.Cut(m.lines[0], " ")
		return slices.Index(s.bound.names(), who)
	}
	return -1
}

// Doubles reports whether two shards may explore the same state, so that the sum of their counts
// includes it twice. After a fault that takes time, everything that a client learns has a later
// time. A fault that takes no time and a transition of A lead to the same state in either order,
// but the shard depends on which comes first.
func (b Bound) Doubles() bool {
	for _, f := range BudgetKinds() {
		switch f {
		case Advance, Pause, Partition, Failover:
		default:
			if b.Budget[f] > 0 {
				return true
			}
		}
	}
	return false
}
