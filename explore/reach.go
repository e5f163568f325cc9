package explore

import (
	"context"
	"encoding/binary"
	"fmt"
	"runtime"
	"sync"

	"github.com/lockfault/lockfault/checker"
)

// sample is how many moves that are known are looked up for one of them that is played
// nevertheless, to see that it does what the tables say.
const sample = 100

// reach finds out where moves lead: what is known is looked up, and the rest played.
func (s *search) reach(ctx context.Context, list []*position) error {
	for todo := list; len(todo) > 0; {
		var play, later []*position
		asked := map[local]bool{}
		for _, q := range todo {
			if s.bound.WithoutTables {
				q.local = false
			}
			e := s.tables.effects[q.key]
			switch {
			case !q.local || e != nil && e.wide:
				play = append(play, q)
			case e != nil:
				q.trail.part = &e.part
				q.parts = e.apply(q.key, q.node, q.from)
				q.known = true
				if s.samples(q) {
					play = append(play, q)
				}
			case asked[q.key]:
				later = append(later, q)
			default:
				asked[q.key] = true
				play = append(play, q)
			}
		}
		if err := s.play(ctx, play); err != nil || s.result.Untabled != "" {
			return err
		}
		todo = later
	}
	s.judge(list)
	return nil
}

// samples reports whether a move that is known is to be played: which are, is a matter
// of where it leads, so it is the same each time.
func (s *search) samples(q *position) bool {
	q.view.Clients = s.tables.people(q.parts)
	id := s.identify(q)
	return binary.BigEndian.Uint16(id[:]) < (1<<16)/sample
}

// play plays what leads to some positions, and learns from it.
func (s *search) play(ctx context.Context, list []*position) error {
	trials := make([]Trial, len(list))
	for i, q := range list {
		trials[i] = s.bound.trial(q.trail)
	}
	looks, err := s.player.Play(ctx, trials)
	if err != nil {
		return err
	}
	for i, q := range list {
		s.result.Runs++
		s.meta = looks[i].Meta
		if err := s.learn(ctx, q, &looks[i]); err != nil {
			return err
		}
		if s.result.Untabled != "" {
			return nil
		}
	}
	return nil
}

// learn takes note of what a script came to.
func (s *search) learn(ctx context.Context, q *position, look *Look) error {
	q.look = look
	if look.Err != "" {
		return nil
	}
	parts := s.tables.parts(look.View)
	differs := ""
	if !s.bound.WithoutTables {
		differs = s.differs(q, parts, look)
	}
	if differs != "" {
		return s.doubt(ctx, q, look, differs)
	}
	if q.local && !q.known {
		s.tables.learn(q.key, q.node, q.from, parts, look.Part)
	}
	q.parts = parts
	q.view.Clients = look.View.Clients
	q.trail.part = &look.Part
	return nil
}

// differs compares what happened in a script with what the tables say of its moves;
// it returns the first difference, or nothing.
func (s *search) differs(q *position, parts parts, look *Look) string {
	before := q.trail.before
	if before != nil && digest(before.history(s.meta).Events, resolution) != look.Before {
		return "before its last move other things happened"
	}
	if !q.known {
		return ""
	}
	if !q.parts.equal(parts) {
		return fmt.Sprintf("it led to %+v in place of %+v", s.tables.view(parts), s.tables.view(q.parts))
	}
	return ""
}

// doubt finds out why a script didn't come to what the tables say: whether the lock does
// not do the same each time, which is a failure, or what one client does depends on what
// another has done, in ways that nothing shows. Then the tables are of no use.
func (s *search) doubt(ctx context.Context, q *position, look *Look, differs string) error {
	again, err := s.player.Again(ctx, Trial{Script: s.bound.trial(q.trail).Script})
	if err != nil {
		return err
	}
	if again.Err == "" && again.Print == look.Print {
		s.result.Untabled = differs + first(again.Part.Events, q.trail.before.history(s.meta).Events)
		return nil
	}
	q.look = &Look{Err: "it was played again, and the two histories differ: the lock does not do the same each time"}
	return nil
}

// first shows the first event of a history that stands differently in another.
func first(got, want []checker.Event) string {
	for i := range min(len(got), len(want)) {
		if digest(got[i:i+1], resolution) != digest(want[i:i+1], resolution) {
			return fmt.Sprintf(": %+v in place of %+v", got[i], want[i])
		}
	}
	return ""
}

// judge asks the checker what is wrong with those histories that were put together.
func (s *search) judge(list []*position) {
	var wait sync.WaitGroup
	workers := min(runtime.GOMAXPROCS(0), 1+len(list)/64)
	for w := range workers {
		wait.Go(func() {
			for i := w; i < len(list); i += workers {
				q := list[i]
				if q.look != nil {
					continue
				}
				verdict := checker.Check(q.trail.history(s.meta))
				q.look = &Look{Anomalies: verdict.Anomalies()}
				if doubt := verdict.Unjudged; doubt != nil {
					q.look.Unjudged = doubt.Says
				}
			}
		})
	}
	wait.Wait()
}
