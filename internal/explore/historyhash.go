package explore

import (
	"crypto/sha256"
	"encoding/hex"
	"hash"

	"github.com/lockfault/lockfault/checker"
)

// A historyHash is an incremental hash of a history, whose events are compared by [roughly]. Within a
// step, the order of simultaneous events of different clients and nodes does not affect the hash.
// The zero value is the hash of the empty history.
type historyHash struct {
	sum  hash.Hash // hash of all events not in open; nil for none
	open []checker.Event
	step bool // the open events happened in a step
	line []byte
}

// begin begins the next step.
func (t *historyHash) begin() {
	t.flush()
	t.step = true
}

// add adds events of the current step.
func (t *historyHash) add(events ...checker.Event) { t.open = append(t.open, events...) }

// flush hashes the open events, to which no more events can be added.
func (t *historyHash) flush() {
	if t.sum == nil {
		t.sum = sha256.New()
	}
	for i := range t.open {
		roughly(&t.open[i])
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

// digest returns the hash. No more events may be added to the last step.
func (t *historyHash) digest() string {
	t.flush()
	return hex.EncodeToString(t.sum.Sum(nil)[:16])
}

// clone returns an independent copy.
func (t *historyHash) clone() historyHash {
	t.flush()
	sum, err := t.sum.(hash.Cloner).Clone()
	if err != nil {
		panic(err) // the hashes of the standard library never fail
	}
	return historyHash{sum: sum, step: t.step}
}

// A hashState is the state after a transition from which a history can be continued. Without it,
// the history would be assembled again for each transition that follows.
type hashState struct {
	weaver historyBuilder
	tally  historyHash
}

// footing returns the hashState after the transition. The parts of this transition and of all
// transitions before it must be known.
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
	f.weaver.events, f.tally.open, f.tally.line = nil, nil, nil // many hashStates are kept, so they hold no spare memory
	t.foot = &f
	return &f
}

// clone returns an independent copy without the events: the copy only continues the history.
func (w *historyBuilder) clone() historyBuilder {
	c := *w
	c.events, c.held = nil, append([]checker.Event(nil), w.held...)
	return c
}
