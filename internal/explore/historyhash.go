package explore

import (
	"crypto/sha256"
	"encoding/hex"
	"hash"

	"github.com/lockfault/lockfault/checker"
	"github.com/lockfault/lockfault/faults"
)

// A historyHash is the hash of what has happened until now, to the millisecond: a history that goes
// on is not hashed from the beginning. In which order different clients and nodes did what they did at the same time in a
// step makes no difference. The zero value has seen nothing.
type historyHash struct {
	sum  hash.Hash // of all that is not in open; nil for nothing
	open []checker.Event
	step bool // what is open happened in a step
	line []byte
}

// begin begins another step.
func (t *historyHash) begin() {
	t.flush()
	t.step = true
}

// add adds what happened in a step.
func (t *historyHash) add(events ...checker.Event) { t.open = append(t.open, events...) }

// flush counts what is open, to which nothing comes any more.
func (t *historyHash) flush() {
	if t.sum == nil {
		t.sum = sha256.New()
	}
	for i := range t.open {
		timed(&t.open[i], faults.Instant)
	}
	if t.step {
		arrange(t.open)
	}
	for i := range t.open {
		t.line = t.open[i].AppendJSON(t.line[:0])
		t.sum.Write(t.line)
	}
	t.open = t.open[:0]
}

// digest returns the hash, where no more happens in the last step.
func (t *historyHash) digest() string {
	t.flush()
	return hex.EncodeToString(t.sum.Sum(nil)[:16])
}

// clone returns one that counts on by itself.
func (t *historyHash) clone() historyHash {
	t.flush()
	sum, err := t.sum.(hash.Cloner).Clone()
	if err != nil {
		panic(err) // those of the standard library can
	}
	return historyHash{sum: sum, step: t.step}
}

// A hashState is what a history goes on from behind a move: nobody needs to put it together again
// for each move that follows.
type hashState struct {
	weaver historyBuilder
	tally  historyHash
}

// footing returns what the history goes on from behind a move whose parts, and those of all before it, are
// known.
func (t *path) footing() *hashState {
	var todo []*path
	at := t
	for ; at != nil && at.foot == nil; at = at.before {
		todo = append(todo, at)
	}
	if len(todo) == 0 {
		return t.foot
	}
	var f hashState
	if at != nil {
		f = hashState{at.foot.weaver.clone(), at.foot.tally.clone()}
	}
	for i := len(todo) - 1; i >= 0; i-- {
		part := todo[i].part()
		f.weaver.events = f.weaver.events[:0]
		f.weaver.add(part.Events, part.Took)
		step := 0
		for at, e := range f.weaver.events {
			for ; step < len(part.Steps) && part.Steps[step] <= at; step++ {
				f.tally.begin()
			}
			f.tally.add(e)
		}
		for ; step < len(part.Steps); step++ {
			f.tally.begin()
		}
	}
	f.tally.flush()
	f.weaver.events, f.tally.open, f.tally.line = nil, nil, nil // there are many of these
	t.foot = &f
	return &f
}

// clone returns one that goes on by itself, with the same events behind it.
func (w *historyBuilder) clone() historyBuilder {
	c := *w
	c.events, c.held = nil, append([]checker.Event(nil), w.held...)
	return c
}
