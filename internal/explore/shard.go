package explore

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"slices"
	"strings"
)

// A search can be split into shards, for several machines. Each path of it belongs to one of
// them, or, as long as little has happened on it, to all: all follow it then. A lot is drawn
// at the first fault, or when A, which begins first, has made so many moves. What is
// drawn is a matter of what has happened until then, so all shards draw the same, and of
// the state behind it, as far as states remember what led to them: so two paths
// that lead to one state nearly always have one lot, and no two shards look at what
// follows on it.

// undrawn is how many moves A makes before a lot is drawn. Few make few lots, and many
// leave much to all shards.
const undrawn = 3

// A shardAssignment says which shards follow a path. It is kept for each, with what it takes to
// say where in the order of a whole search a path is.
type shardAssignment struct {
	before *shardAssignment
	nth    int32 // of the moves from there
	drawn  bool  // it belongs to this shard alone
	moves  int8  // how many A has made; of no interest once it is drawn
}

// Counts are how much there is in a search, or in the part of it that is in every
// shard, as in [Result].
type Counts struct {
	States int `json:"states"`
	Ends   int `json:"ends"`
	Merged int `json:"merged"`
	Moves  int `json:"moves"`
}

// class returns what of a lot is part of a state. Two paths whose lots differ in that are not
// one, even if the state is: what one shard leaves to another is not counted on by
// whoever has come there by another way.
func (l *shardAssignment) class() int {
	if l.drawn {
		return 0
	}
	return 1 + int(l.moves)
}

// course returns the numbers of the moves that led there.
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

// shared adds to a count of what is in every shard, if a position is.
func (s *search) shared(p *searchNode, count *int) {
	if p.shards != nil && !p.shards.drawn {
		*count++
	}
}

// deal drops what is another shard's of where a path leads: the last of the list are
// where these moves do, and before them may be its close.
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

// draw reports whether a lot is drawn with a move from a position, and whose it is, from 1.
func (s *search) draw(p *searchNode, m move) (drawn bool, shard int) {
	var text strings.Builder
	show := func(client int) {
		fmt.Fprintf(&text, "%+v\n", s.tables.clients.list[p.parts.clients[client]])
	}
	switch {
	case m.cost == "": // no fault, nor what one begins with
		if m.client != 1 || p.shards.moves < undrawn {
			return false, 0
		}
		show(0)
	default:
		text.WriteString(strings.Join(m.lines, "\n"))
		text.WriteByte('\n')
		if who := s.befalls(m); who >= 0 {
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

// befalls returns the number of the client that a fault is about, if it makes no
// difference to others whether it was before or after what they did: -1 if it may.
func (s *search) befalls(m move) int {
	switch m.cost {
	case LoseReply, LoseRequest:
		return m.client - 1
	case Crash, ClientRestart, ClientClock:
		who, _, _ := strings.Cut(m.lines[0], " ")
		return slices.Index(s.bound.names(), who)
	}
	return -1
}

// Doubles reports whether two shards of a search may look at the same state, so that who adds up
// counts it twice. After a fault that takes time, all that a client learns is dated behind
// it. One that takes none, and what A does beside it, lead to one state in either order, but
// the lot is drawn with whichever comes first.
func (b Bound) Doubles() bool {
	for _, f := range Faults() {
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
