package explore

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/lockfault/lockfault/checker"
	"github.com/lockfault/lockfault/harness"
)

// identity is what a state is known by.
type identity [16]byte

// chunk is how many scripts are handed to the player at once.
const chunk = 256

// Search looks at every state that can be reached within the bound, those with the
// shortest paths first, and keeps the first script for each anomaly that it sees. It
// blocks until it is done or ctx is; then it returns what it has found so far, not
// exhausted. The error is the player's. tell, which may be nil, is called now and
// then with what there is so far.
func Search(ctx context.Context, b Bound, player Player, tell func(Result)) (Result, error) {
	s := &search{bound: b, player: player, seen: map[identity]bool{}, tell: tell}
	err := s.run(ctx)
	s.result.Exhausted = err == nil && s.result.Cut == "" && len(s.result.Failures) == 0
	if err != nil && ctx.Err() != nil {
		s.result.Cut, err = "interrupted", nil
		if cause := context.Cause(ctx); errors.Is(cause, context.DeadlineExceeded) {
			s.result.Cut = "out of time"
		}
	}
	return s.result, err
}

type search struct {
	bound  Bound
	player Player
	tell   func(Result)
	seen   map[identity]bool
	found  []checker.Anomaly
	result Result
}

// run goes from the states that can be reached by so many moves to those that take
// one more.
func (s *search) run(ctx context.Context) error {
	root := &position{rounds: make([]int, s.bound.Clients), idle: everybody(s.bound.Clients), spent: map[Fault]int{}}
	layer, err := s.visit(ctx, []*position{root})
	for err == nil && len(layer) > 0 && s.result.Cut == "" {
		if s.bound.Moves > 0 && layer[0].moves >= s.bound.Moves {
			s.result.Cut = fmt.Sprintf("paths of more than %d moves were not followed", s.bound.Moves)
			break
		}
		var next []*position
		for _, p := range layer {
			moves, done := s.bound.moves(p)
			if done {
				s.result.Ends++
				next = append(next, s.close(p))
			}
			for _, m := range moves {
				next = append(next, s.after(p, m))
			}
		}
		layer, err = s.visit(ctx, next)
	}
	return err
}

// close returns the position in which so much time has gone by that what was
// forgotten shows, and somebody who still can has asked for the lock.
func (s *search) close(p *position) *position {
	lines := []string{"wait 1.6ttl"}
	for _, c := range p.view.Clients {
		if !c.Crashed && !c.Busy {
			lines = append(lines, "pass "+c.Name, c.Name+" acquire within 1.003ttl") // no multiple of a pause between two tries
			break
		}
	}
	q := s.after(p, move{lines: lines})
	q.closed = true
	return q
}

// after returns where a move leads. Its view is not known yet.
//
// When a client begins makes no difference as long as time stands still and no fault
// happens: its first request is held, and what others do meanwhile it doesn't see. So
// of all these orders one is looked at: clients begin as soon as they can, in the
// order of their names, or after the next fault, or not at all.
func (s *search) after(p *position, m move) *position {
	q := &position{
		lines: slices.Concat(p.lines, m.lines), moves: p.moves + 1, requests: p.requests,
		rounds: p.rounds, spent: p.spent, faults: p.faults,
	}
	if m.sends {
		q.requests++
	}
	switch {
	case s.bound.plain || m.client == 0:
		q.idle = everybody(s.bound.Clients)
	default:
		q.idle = make([]bool, s.bound.Clients)
		if m.begun {
			copy(q.idle[m.client:], p.idle[m.client:])
		}
		q.idle[m.client-1] = true
	}
	if m.begun {
		q.rounds = slices.Clone(p.rounds)
		q.rounds[m.client-1]++
	}
	if m.cost != "" {
		q.spent = maps.Clone(p.spent)
		q.spent[m.cost]++
	}
	if m.fault != "" {
		q.faults = append(slices.Clip(p.faults), m.fault)
	}
	return q
}

func everybody(clients int) []bool {
	list := make([]bool, clients)
	for i := range list {
		list[i] = true
	}
	return list
}

// visit plays what leads to the positions and returns those that are new.
func (s *search) visit(ctx context.Context, list []*position) ([]*position, error) {
	var fresh []*position
	for part := range slices.Chunk(list, chunk) {
		scripts := make([]string, len(part))
		for i, p := range part {
			scripts[i] = s.bound.script(p.lines, nil)
		}
		looks, err := s.player.Play(ctx, scripts)
		if err != nil {
			return nil, err
		}
		for i, p := range part {
			if s.arrive(ctx, p, scripts[i], looks[i]) {
				fresh = append(fresh, p)
			}
			if s.result.Cut != "" {
				return fresh, nil
			}
		}
		if s.tell != nil {
			s.tell(s.result)
		}
	}
	return fresh, nil
}

// arrive takes note of where a position turned out to be, and reports whether nobody
// has been there.
func (s *search) arrive(ctx context.Context, p *position, script string, look Look) bool {
	r := &s.result
	r.Runs++
	r.Depth = max(r.Depth, p.moves)
	if look.Err != "" {
		r.Failures = append(r.Failures, Failure{script, look.Err})
		if len(r.Failures) == mostFailures {
			r.Cut = fmt.Sprintf("%d scripts came to nothing", mostFailures)
		}
		return false
	}
	if look.Unjudged != "" {
		r.Unjudged = look.Unjudged
	}
	p.view = look.View
	for _, a := range s.settled(p, look) {
		if !slices.Contains(s.found, a) {
			s.found = append(s.found, a)
			s.find(ctx, a, p, look)
		}
	}
	id := s.identify(p)
	if s.seen[id] && !s.bound.apart {
		r.Merged++
		return false
	}
	s.seen[id] = true
	r.States++
	if s.bound.States > 0 && r.States >= s.bound.States && r.Cut == "" {
		r.Cut = fmt.Sprintf("more than %d states", s.bound.States)
	}
	return true
}

// settled returns the anomalies that are there to stay, and that are the lock's.
// Whether an operation waited in vain shows when nothing more is under way that could
// explain it, and a lock whose server was away, or didn't answer for as long as a lease
// takes, is unavailable for that reason.
func (s *search) settled(p *position, look Look) []checker.Anomaly {
	busy := slices.ContainsFunc(look.View.Clients, func(c harness.ClientView) bool { return c.Busy })
	return slices.DeleteFunc(slices.Clone(look.Anomalies), func(a checker.Anomaly) bool {
		switch a {
		case checker.Unavailable:
			return busy || p.away()
		case checker.StuckLock, checker.Starvation, checker.SelfDeadlock:
			return busy
		}
		return false
	})
}

// identify returns what a state is known by: all that what comes next can depend on.
func (s *search) identify(p *position) identity {
	begins := make([]bool, len(p.idle))
	for i := range begins {
		begins[i] = s.bound.begins(p, i)
	}
	text, err := json.Marshal([]any{p.view, p.rounds, begins, p.spent, p.faults, p.closed})
	if err != nil {
		panic(err) // there is nothing in it that JSON doesn't have
	}
	sum := sha256.Sum256(text)
	return identity(sum[:16])
}

// find keeps a script that shows an anomaly, if it does so again.
func (s *search) find(ctx context.Context, a checker.Anomaly, p *position, look Look) {
	script := s.bound.script(p.lines, look.Anomalies)
	var first string
	for i := range 2 {
		again, err := s.player.Again(ctx, script)
		if err != nil {
			return // the search is about to learn that, too
		}
		if i == 0 {
			first = again.Print
		}
		why := again.Err
		switch {
		case why != "":
		case !slices.Equal(again.Anomalies, look.Anomalies):
			why = fmt.Sprintf("it showed %v, and when it was played again %v: the lock does not do the same each time", look.Anomalies, again.Anomalies)
		case again.Print != first:
			why = "it was played twice more, and the two histories differ: the lock does not do the same each time"
		default:
			continue
		}
		s.result.Failures = append(s.result.Failures, Failure{script, why})
		return
	}
	s.result.Findings = append(s.result.Findings, Finding{
		Anomaly: a, Script: script, Anomalies: look.Anomalies, Moves: p.moves, Requests: p.requests,
	})
	if s.bound.UntilFirst {
		s.result.Cut = "until the first"
	}
}
