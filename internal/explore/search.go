package explore

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/lockfault/lockfault/checker"
	"github.com/lockfault/lockfault/faults"
	"github.com/lockfault/lockfault/internal/harness"
	"github.com/lockfault/lockfault/internal/leases"
)

// A layer is explored in chunks: at least chunk transitions, and in a large layer a thirty-second
// of it, at most most. Large chunks give the player and the judges enough work.
const (
	chunk = 256
	most  = 2048
)

// Search explores every state within the bound, in order of path length, and keeps the first script
// for each anomaly.
//
// Search blocks until it is done or ctx is done; in the latter case it returns the result so far,
// not exhausted. The error is the player's. If not nil, tell is called from time to time with the
// result so far.
func Search(ctx context.Context, b Bound, player Player, tell func(Result)) (Result, error) {
	return conduct(ctx, b, player, tell, (*search).run)
}

// conduct runs a search and sets the result's Cut and Exhausted. If cached runs leave something
// behind, conduct searches again without cached runs; if the tables turn out to be invalid for the
// lock, it searches again without tables.
func conduct(ctx context.Context, b Bound, player Player, tell func(Result), run func(*search, context.Context) error) (Result, error) {
	s := newSearch(b, player, tell)
	err := s.whole(ctx, run)
	if err == nil {
		err = s.endRuns(ctx)
	}
	if errors.Is(err, errLeft) {
		b.afresh = true
		s = newSearch(b, player, tell)
		err = s.whole(ctx, run)
	}
	if s.result.Untabled != "" && s.result.Cut == "" && len(s.result.Failures) == 0 && err == nil {
		why, runs := s.result.Untabled, s.result.Runs
		b.WithoutTables = true
		s = newSearch(b, player, tell)
		s.result.Runs = runs
		err = s.whole(ctx, run)
		s.result.Untabled = why
	}
	switch {
	case err != nil || s.result.Cut != "":
	case s.result.Varied > 0:
		s.result.Cut = "the lock does not do the same each time"
	case s.result.Untabled != "":
		s.result.Cut = "clients depend on more than a state shows of them"
	}
	for _, f := range s.fleeting {
		s.result.Failures = append(s.result.Failures, f.Failure)
	}
	s.result.Exhausted = err == nil && s.result.Cut == "" && len(s.result.Failures) == 0
	if err != nil && ctx.Err() != nil {
		s.result.Cut, err = "interrupted", nil
		var cut Cut
		switch cause := context.Cause(ctx); {
		case errors.As(cause, &cut):
			s.result.Cut = string(cut)
		case errors.Is(cause, context.DeadlineExceeded):
			s.result.Cut = "out of time"
		}
	}
	return s.result, err
}

// whole runs a search and waits for everything that it started.
func (s *search) whole(ctx context.Context, run func(*search, context.Context) error) error {
	err := run(s, ctx)
	if late := s.checked(ctx); err == nil {
		err = late
	}
	return err
}

// A Cut is the cause of a context that ends a search early. Its text becomes [Result.Cut].
type Cut string

// Error returns the text.
func (c Cut) Error() string { return string(c) }

// Beyond is the Cut of a search that has reached its [Bound.Reach].
const Beyond = "as far as another shard's finding"

func newSearch(b Bound, player Player, tell func(Result)) *search {
	return &search{bound: b, player: player, seen: map[identity]bool{}, found: map[checker.Anomaly]leases.Outcome{}, progress: tell}
}

type search struct {
	bound    Bound
	player   Player
	progress func(Result)
	tables   transitionCache
	meta     checker.Meta
	judges   []*pathChecker
	checks   *checks // nil if nothing is being played
	// doubted is the last path on which servers were not judged, until the reason is known.
	doubted *path
	seen    map[identity]bool
	// found holds the worst outcome that was found of each anomaly.
	found  map[checker.Anomaly]leases.Outcome
	result Result
	// fleeting holds, for a lock with Bound.Varies, anomalies that a script showed once and that no
	// script has shown each time.
	fleeting []flakyFinding
	// common counts the part of the result that every shard repeats.
	common Counts
}

// run explores layer by layer: from the states reached by n transitions to those reached by n+1.
func (s *search) run(ctx context.Context) error {
	root := s.root()
	if s.bound.Shards > 0 {
		root.shards, s.result.Common = &shardAssignment{}, &s.common
	}
	layer, err := s.visit(ctx, []*searchNode{root})
	for err == nil && len(layer) > 0 && s.result.Cut == "" && s.result.Untabled == "" {
		if s.bound.Moves > 0 && layer[0].moves >= s.bound.Moves {
			s.result.Cut = s.bound.tooLong()
			break
		}
		if s.bound.Reach != nil {
			if reach := s.bound.Reach(); reach > 0 && layer[0].moves >= reach {
				s.result.Cut = Beyond
				break
			}
		}
		layer, err = s.follow(ctx, layer)
	}
	return err
}

// root returns the node where all paths begin. Its snapshot is not known yet.
func (s *search) root() *searchNode {
	return &searchNode{trail: &path{}, memory: make([]int32, s.bound.Clients+1), suffered: make([]suffering, s.bound.Clients), rounds: make([]int, s.bound.Clients), idle: everybody(s.bound.Clients), spent: map[BudgetKind]int{}, budgetKey: budgetKey(nil)}
}

// follow makes all transitions from the nodes of a layer, and returns the nodes with new states.
func (s *search) follow(ctx context.Context, layer []*searchNode) (fresh []*searchNode, err error) {
	var next []*searchNode
	at := max(chunk, min(most, len(layer)/32))
	for i, p := range layer {
		p.view = s.tables.view(p.parts)
		if s.bound.Nodes > 1 {
			p.lines, _ = p.trail.script()
		}
		moves, done := s.bound.moves(p)
		if done {
			s.result.Ends++
			next = append(next, s.close(p))
			s.shared(p, &s.common.Ends)
		}
		for _, m := range moves {
			next = append(next, s.after(p, m))
		}
		next = s.deal(p, moves, next)
		layer[i] = nil // frees memory: a layer may be large
		if len(next) < at && i < len(layer)-1 {
			continue
		}
		list, err := s.visit(ctx, next)
		if fresh = append(fresh, list...); err != nil || s.result.Cut != "" || s.result.Untabled != "" {
			return fresh, err
		}
		next = nil
	}
	return fresh, s.checked(ctx) // the player does not keep runs of paths outside the next layer
}

// close returns the node in which enough time has passed to reveal locks left behind. A client that
// still can asks for the lock. The network passes everything from then on: if requests were held
// for so long, a lock that extends its lease in the background and was not released would lose the
// lease.
func (s *search) close(p *searchNode) *searchNode {
	lines := []string{s.bound.freely(), "wait 1.6ttl"}
	var ask move
	if i := asker(p.view); i >= 0 {
		// The span is not a multiple of the pause between two attempts.
		ask = move{lines: []string{p.view.Clients[i].Name + " acquire within 1.003ttl"}, client: i + 1, sends: true, to: anywhere}
	}
	q := s.after(p, move{lines: append(slices.Clip(lines), ask.lines...), closes: true})
	if ask.client > 0 && !s.bound.WithoutTables {
		q.half = &splitMove{s.after(p, move{lines: lines}), ask}
	}
	return q
}

// asker returns the index of the client that asks for the lock at the end, or -1 if no client can.
// The first client that owns no lock on a server is preferred, since a lock may admit its own
// holder while it keeps others out.
func asker(v harness.Snapshot) int {
	able := func(c harness.ClientView) bool { return !c.Crashed && !c.Busy }
	others := slices.IndexFunc(v.Clients, func(c harness.ClientView) bool {
		return able(c) && !slices.ContainsFunc(v.Servers, func(s faults.ServerView) bool { return s.Owner == c.Name })
	})
	if others >= 0 {
		return others
	}
	return slices.IndexFunc(v.Clients, able)
}

// after returns the node to which a transition leads. The node's snapshot is not known yet.
//
// The point at which a client begins is irrelevant as long as time stands still and no fault
// happens: the client's first request is held, and the client does not see what other clients do
// meanwhile. Only one of these orders is explored: clients begin as soon as they can, in the order
// of their names, or after the next fault, or not at all.
func (s *search) after(p *searchNode, m move) *searchNode {
	q := &searchNode{
		trail: &path{before: p.trail, depth: p.trail.depth + 1}, moves: p.moves + 1, requests: p.requests,
		rounds: p.rounds, spent: p.spent, budgetKey: p.budgetKey, faults: p.faults, words: p.words, memory: p.memory, shows: p.shows, closed: m.closes,
	}
	q.from, q.before = p.parts, p.memory
	q.key, q.nodes, q.local = s.tables.at(p, m)
	q.trail.lines = s.tables.same(q.key.move, m.lines)
	q.spreads = m.client == 0 && s.tables.spreads(p)
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
	q.suffered = p.suffers(m)
	if m.begun {
		q.rounds = slices.Clone(p.rounds)
		q.rounds[m.client-1]++
	}
	if m.cost != "" {
		q.spent = maps.Clone(p.spent)
		q.spent[m.cost]++
		q.budgetKey = budgetKey(q.spent)
	}
	if m.fault != "" {
		q.faults = append(slices.Clip(p.faults), m.fault)
		q.words = s.tables.index(strings.Join(q.faults, "\n"))
		q.memory = s.tables.memory(s.bound.names(), q.faults)
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

// visit finds the states to which transitions lead, and returns the nodes with new states.
func (s *search) visit(ctx context.Context, list []*searchNode) ([]*searchNode, error) {
	if err := s.reach(ctx, list); err != nil || s.result.Untabled != "" {
		return nil, err
	}
	var fresh, check []*searchNode
	for _, q := range list {
		isNew := s.arrive(ctx, q)
		if isNew {
			fresh = append(fresh, q)
		}
		if (!isNew || s.ends(q)) && s.samples(q) {
			check = append(check, q)
		}
		if s.result.Cut != "" || s.result.Untabled != "" {
			break
		}
	}
	if s.bound.Runs > 0 && s.result.Runs >= s.bound.Runs && s.result.Cut == "" {
		s.result.Cut = fmt.Sprintf("more than %d scripts", s.bound.Runs)
	}
	s.doubt()
	if s.progress != nil {
		s.progress(s.result)
	}
	return fresh, s.check(ctx, check)
}

// ends reports whether the search does not continue from a node although its state is new.
func (s *search) ends(q *searchNode) bool {
	return q.closed || s.bound.Moves > 0 && q.moves >= s.bound.Moves
}

// doubt sets the reason why servers were not judged, from the last node where they were not.
func (s *search) doubt() {
	if s.doubted != nil {
		var w historyBuilder
		s.result.Unjudged = checker.Check(w.telling(s.doubted, s.meta)).Unjudged.Message
		s.doubted = nil
	}
}

// arrive records the state and the anomalies of a node, and reports whether the state is new.
func (s *search) arrive(ctx context.Context, q *searchNode) bool {
	r := &s.result
	r.Moves++
	s.shared(q, &s.common.Moves)
	r.Depth = max(r.Depth, q.moves)
	look := q.outcome
	q.outcome, q.shows = nil, look.Anomalies
	if look.Err != "" {
		s.fails(q, look.Err)
		return false
	}
	switch {
	case look.Unjudged != "":
		r.Unjudged, s.doubted = look.Unjudged, nil
	case q.unjudged:
		s.doubted = q.trail
	}
	for _, f := range s.findings(q, look.Anomalies) {
		if f.Outcome.Worse(s.found[f.Anomaly]) {
			s.found[f.Anomaly] = f.Outcome
			s.find(ctx, f, q, look.Anomalies)
		}
	}
	id := s.identify(q)
	q.id = id
	if s.seen[id] && !s.bound.apart {
		r.Merged++
		s.shared(q, &s.common.Merged)
		return false
	}
	s.seen[id] = true
	r.States++
	s.shared(q, &s.common.States)
	if s.bound.States > 0 && r.States >= s.bound.States && r.Cut == "" {
		r.Cut = fmt.Sprintf("more than %d states", s.bound.States)
	}
	return true
}

// fails records a script without a usable outcome.
func (s *search) fails(q *searchNode, why string) {
	r := &s.result
	r.Failures = append(r.Failures, Failure{s.bound.trial(q.trail).Script, why})
	if len(r.Failures) == mostFailures {
		r.Cut = fmt.Sprintf("%d scripts had no verdict", mostFailures)
	}
}

// findings judges the anomalies of a node that are final and whose worst outcome is not found yet. An
// anomaly that is final only when no operation is in progress is left out while one is. So is an operation
// that waited in vain because the search kept it from its servers.
func (s *search) findings(p *searchNode, all []checker.Anomaly) []leases.Finding {
	var busy func() bool = sync.OnceValue(func() bool {
		return slices.ContainsFunc(p.parts.clients, func(n int32) bool { return s.tables.clients.list[n].Busy })
	})
	open := slices.DeleteFunc(slices.Clone(all), func(a checker.Anomaly) bool {
		return s.found[a] == leases.Bug || lasting(a) && busy()
	})
	if len(open) == 0 {
		return nil
	}
	list := leases.Judge(p.trail.whole(s.meta), s.bound.Lock)
	return slices.DeleteFunc(list, func(f leases.Finding) bool {
		return !slices.Contains(open, f.Anomaly) || f.Anomaly == checker.Unavailable && f.Outcome == leases.Limitation && (p.away() || f.ByHold())
	})
}

// A flakyFinding is an anomaly that a script showed once, but not each time.
type flakyFinding struct {
	Failure // the first such script
	anomaly checker.Anomaly
	scripts int // number of such scripts
}

// recordFlaky records a script that does not show an anomaly each time. The next script that shows the
// anomaly is tried again, up to a limit, because each try plays two more runs.
func (s *search) recordFlaky(a checker.Anomaly, f Failure) {
	i := slices.IndexFunc(s.fleeting, func(f flakyFinding) bool { return f.anomaly == a })
	if i < 0 {
		i = len(s.fleeting)
		s.fleeting = append(s.fleeting, flakyFinding{Failure: f, anomaly: a})
	}
	if s.fleeting[i].scripts++; s.fleeting[i].scripts < mostFailures {
		delete(s.found, a)
	}
}

// find adds a finding if its script shows the same anomalies when it is played again. The outcome is that
// of the script that was played. A finding of the same anomaly with a better outcome is replaced.
func (s *search) find(ctx context.Context, f leases.Finding, p *searchNode, shows []checker.Anomaly) {
	if s.checked(ctx) != nil {
		return
	}
	lines, _ := p.trail.script()
	script := s.bound.script(lines, shows)
	look, err := steady(ctx, s.player, script, shows)
	var unsound *NotReproducibleError
	switch {
	case errors.As(err, &unsound) && s.bound.Varies:
		s.recordFlaky(f.Anomaly, Failure{script, unsound.Why})
		return
	case errors.As(err, &unsound):
		s.result.Failures = append(s.result.Failures, Failure{script, unsound.Why})
		return
	case err != nil:
		return // the search will see the same error
	}
	s.fleeting = slices.DeleteFunc(s.fleeting, func(flaky flakyFinding) bool { return flaky.anomaly == f.Anomaly })
	if played := look.finding(f.Anomaly); played != nil {
		f = *played
	}
	s.result.Findings = replaced(s.result.Findings, Finding{
		Anomaly: f.Anomaly, Outcome: f.Outcome, Reason: f.Reason, Script: script, Anomalies: shows, Moves: p.moves, Requests: p.requests, Course: p.shards.course(), path: p.trail.path(),
	})
	s.result.Cut = cmp.Or(s.bound.until(f.Anomaly, f.Outcome), s.result.Cut)
}

// replaced adds a finding to a list, unless the list has one of the same anomaly with an outcome that is
// no better; one with a better outcome is removed.
func replaced(list []Finding, f Finding) []Finding {
	i := slices.IndexFunc(list, func(other Finding) bool { return other.Anomaly == f.Anomaly })
	switch {
	case i < 0:
	case !f.Outcome.Worse(list[i].Outcome):
		return list
	default:
		list = slices.Delete(list, i, i+1)
	}
	return append(list, f)
}

// Ends reports whether a search ends when an anomaly with that outcome is found.
func (b Bound) Ends(a checker.Anomaly, o leases.Outcome) bool { return b.until(a, o) != "" }

// until returns the reason why a search ends with an anomaly, or "" if it does not.
func (b Bound) until(a checker.Anomaly, o leases.Outcome) string {
	switch {
	case b.UntilFirst && o == leases.Bug:
		return "until the first bug"
	case slices.Contains(b.Until, a):
		return "until " + string(a)
	}
	return ""
}

// tooLong returns the Cut of a search with a limit on the length of paths.
func (b Bound) tooLong() string {
	return fmt.Sprintf("paths of more than %d moves were not followed", b.Moves)
}

// Asks reports whether cut is what the user asked for: empty, the limit on the length of paths, or a
// finding that ends the search. A search with such a cut is not incomplete.
func (b Bound) Asks(cut string) bool {
	return cut == "" || b.Moves > 0 && cut == b.tooLong() || cut == Beyond || strings.HasPrefix(cut, "until ")
}

// steady plays a script twice, each time in its own process, and returns the outcome if both are
// equal. If shows is not empty, both runs must show exactly these anomalies.
func steady(ctx context.Context, player Player, script string, shows []checker.Anomaly) (Outcome, error) {
	var first Outcome
	for i := range 2 {
		look, err := player.PlayAlone(ctx, Trial{Script: script})
		switch {
		case err != nil:
			return Outcome{}, err
		case look.Err != "":
			return Outcome{}, &NotReproducibleError{script, look.Err}
		case len(shows) > 0 && !slices.Equal(look.Anomalies, shows):
			return Outcome{}, &NotReproducibleError{script, fmt.Sprintf("it showed %v, and when it was played again %v: the lock does not do the same each time", shows, look.Anomalies)}
		case i > 0 && look.Print != first.Print:
			return Outcome{}, &NotReproducibleError{script, "it was played twice more, and the two histories differ: the lock does not do the same each time"}
		}
		first = look
	}
	return first, nil
}
