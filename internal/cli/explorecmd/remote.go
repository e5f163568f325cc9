package explorecmd

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/lockfault/lockfault/internal/cli/cells"
	"github.com/lockfault/lockfault/internal/cli/kit"
	"github.com/lockfault/lockfault/internal/cli/search"
	"github.com/lockfault/lockfault/internal/explore"
	"github.com/lockfault/lockfault/internal/queue"
	"github.com/lockfault/lockfault/internal/queue/item"
)

// checkShared returns a usage error for flags that a search on a queue does not support.
func (o *exploreOptions) checkShared(cmd *cobra.Command) error {
	changed := cmd.Flags().Changed
	if !changed("queue") {
		return kit.UsageIf(changed("parts"), "--parts is of a search on a queue: name one with --queue, or leave it out")
	}
	return cmp.Or(
		kit.UsageIf(o.Drawn.Method != "", "--queue: schedules that are drawn by chance are not shared: draw some on each machine, with a --seed of its own"),
		kit.UsageIf(o.checkpoint != "", "--queue: what was searched is kept by the queue: leave --checkpoint out"),
		kit.UsageIf(o.Bound.Shards > 0, "--queue: the search is cut into parts by itself: leave --shard out"),
		kit.UsageIf(o.Drawn.Shrink, "--queue: what a search of all finds is shortest among all paths: leave --shrink out, and have \"shrink\" make the scripts smaller"),
		kit.UsageIf(changed("memory"), "--queue: each worker has --memory of its own: leave --memory out"),
		kit.UsageIf(o.Bound.States > 0, "--queue: nobody counts the states of all parts while they are searched: leave --states out"),
		kit.UsageIf(changed("parts") && o.parts < 1 || o.parts > explore.MaxShards, "--parts %d: give 1 to %d", o.parts, explore.MaxShards),
	)
}

// lookAt is the interval between checks for idle workers.
const lookAt = 2 * time.Second

// piece is a shard of a search, as an item of the queue. Shard i of n consists of shards i and i+n
// of 2n, its halves.
type piece struct {
	shard, of int
	item      queue.Item
	began     time.Time
	failed    int // number of error answers
	result    *explore.Result
	parts     [2]*piece // nil until the piece is split
}

// done reports whether the piece has a result, or both of its halves are done.
func (p *piece) done() bool {
	return p.result != nil || p.parts[0] != nil && p.parts[0].done() && p.parts[1].done()
}

// results returns the shards that make up the piece; a shard without an answer has a nil Result.
func (p *piece) results() []explore.Shard {
	if p.result != nil || p.parts[0] == nil {
		return []explore.Shard{{Number: p.shard, Of: p.of, Result: p.result}}
	}
	return append(p.parts[0].results(), p.parts[1].results()...)
}

// sharedSearch is a search by the workers of a queue.
type sharedSearch struct {
	*exploreOptions
	strategy string
	pieces   []*piece
	by       map[string]*piece // unanswered pieces by the names of their items
	reach    int
	explorer *search.Explorer // plays the scripts of workers' findings on this machine
}

// searchShared does the work of [explore.Search] with the workers of the queue. searchShared blocks
// until all parts are answered or ctx is done.
func (o *exploreOptions) searchShared(ctx context.Context, e *search.Explorer, strategy string) (explore.Result, error) {
	s := &sharedSearch{exploreOptions: o, strategy: strategy, by: map[string]*piece{}, explorer: e}
	parts, err := s.howMany(ctx)
	if err != nil && ctx.Err() == nil {
		return explore.Result{}, err
	}
	for shard := range parts {
		p, err := s.ask(ctx, shard+1, parts)
		if err != nil && ctx.Err() == nil {
			return explore.Result{}, err
		}
		s.pieces = append(s.pieces, p)
	}
	ended := ""
	for len(s.by) > 0 && ended == "" {
		within, cancel := context.WithTimeout(ctx, lookAt)
		answer, err := o.Remote.Next(within)
		cancel()
		switch {
		case err == nil:
			err = s.take(ctx, answer)
		case ctx.Err() != nil:
			ended = "interrupted"
			if errors.Is(context.Cause(ctx), context.DeadlineExceeded) {
				ended = search.OutOfTime
			}
			err = nil
		case errors.Is(err, context.DeadlineExceeded):
			err = s.split(ctx)
		}
		if err != nil {
			return explore.Result{}, err
		}
	}
	var all []explore.Shard
	for _, p := range s.pieces {
		all = append(all, p.results()...)
	}
	if ended == search.OutOfTime && !slices.ContainsFunc(all, func(s explore.Shard) bool { return s.Result != nil }) {
		return explore.Result{}, kit.Exit(kit.ExitUndecided, errors.New("no part of the search was done in time, so nothing is known: give more with --for, or see that workers of this build are there"))
	}
	result := explore.Join(all, o.Bound)
	if o.Doubled = len(all) > 1 && o.Bound.Doubles(); len(all) == 1 {
		result.Common = nil // Common is only for shards
	}
	s.cutElsewhere = slices.ContainsFunc(all, func(p explore.Shard) bool { return p.Result != nil && !s.Bound.Asks(p.Result.Cut) })
	if ended != "" {
		result.Cut = ended // the reason that any search gives
	}
	return result, nil
}

// howMany returns the initial number of parts. Parts repeat some of the work of others, so there
// are only as many as keep workers busy: twice the idle workers, or one part if fewer than two are
// idle.
func (s *sharedSearch) howMany(ctx context.Context) (int, error) {
	if s.parts > 0 {
		return s.parts, nil
	}
	state, err := s.Remote.State(ctx)
	if err != nil || state.Idle < 2 {
		return 1, err
	}
	return min(2*state.Idle, explore.MaxShards), nil
}

// ask puts shard number shard, of of shards, into the queue.
func (s *sharedSearch) ask(ctx context.Context, shard, of int) (*piece, error) {
	b := s.Bound
	if b.Shard, b.Shards = shard, of; of == 1 {
		b.Shard, b.Shards = 0, 0 // the whole search, without shards
	}
	asked, err := item.Search{Strategy: s.strategy, Nodes: s.Nodes, Seed: s.Seed, Limit: s.CellTimeout, Bound: b}.Item()
	if err != nil {
		return nil, err
	}
	p := &piece{shard: shard, of: of, began: time.Now(), item: asked}
	s.by[p.item.Name] = p
	return p, s.Remote.Put(ctx, p.item)
}

// take processes an answer: it checks it, stores it, drops parts that it makes superfluous and
// publishes a shorter reach. A wrong answer excludes its worker; an error is retried until the
// piece has failed deaths times.
func (s *sharedSearch) take(ctx context.Context, answer queue.Answer) error {
	p := s.by[answer.Name]
	if p == nil {
		return nil // the part was dropped before
	}
	if answer.Err != nil {
		return fmt.Errorf("shard %d of %d: %w", p.shard, p.of, answer.Err)
	}
	came, err := s.read(ctx, p, answer)
	var wrong *cells.WrongAnswer
	if errors.As(err, &wrong) {
		s.Remote.Say(fmt.Sprintf("worker %s is excluded: %s: shard %d of %d is asked anew", queue.Short(answer.Worker), wrong, p.shard, p.of))
		p.began = time.Now()
		return s.Remote.Refuse(ctx, p.item, answer, true)
	}
	if ctx.Err() != nil {
		return nil // interrupted before the answer was checked
	}
	if err != nil {
		return err
	}
	if came.Err != "" {
		if p.failed++; p.failed < cells.MaxDeaths {
			return s.Remote.Refuse(ctx, p.item, answer, false)
		}
		return fmt.Errorf("shard %d of %d: %s", p.shard, p.of, came.Err)
	}
	delete(s.by, answer.Name)
	p.result = &came.Result
	if err := s.drop(ctx); err != nil {
		return err
	}
	for _, f := range came.Result.Findings {
		if !s.Bound.Ends(f.Anomaly, f.Outcome) || s.reach > 0 && f.Moves >= s.reach {
			continue
		}
		s.reach = f.Moves
		if err := s.Remote.SetNote(ctx, search.ReachNote, strconv.Itoa(s.reach)); err != nil {
			return err
		}
	}
	return nil
}

// read decodes and verifies the answer of a part. To verify, read plays each script of a finding on
// this machine, and searches a sample of the part. The error is a *WrongAnswer if no worker of this
// build would give the answer.
func (s *sharedSearch) read(ctx context.Context, p *piece, answer queue.Answer) (came search.PartResult, err error) {
	if err := json.Unmarshal(answer.Body, &came); err != nil {
		return came, cells.Wrongly("its answer can't be read: %v", err)
	}
	if came.Err != "" {
		return search.PartResult{Err: came.Err}, nil
	}
	r := &came.Result
	if why := s.impossible(r); why != "" {
		return came, cells.Wrongly("%s", why)
	}
	for _, f := range r.Findings {
		look, err := s.explorer.PlayAlone(ctx, explore.Trial{Script: f.Script})
		switch {
		case err != nil:
			return came, err
		case look.Err != "" || !slices.Equal(look.Anomalies, f.Anomalies):
			return came, cells.Wrongly("it says that a script shows %v, and on this machine it shows %v", f.Anomalies, look.Anomalies)
		}
	}
	return came, s.sample(ctx, p, r)
}

// impossible returns why no search can have the result r, or "".
func (s *sharedSearch) impossible(r *explore.Result) string {
	if min(r.States, r.Ends, r.Merged, r.Moves, r.Runs, r.Depth, r.Varied) < 0 {
		return "it has numbers that no search has"
	}
	if r.States > r.Moves+1 || r.Ends > r.States || r.Depth > r.Moves {
		return "it has more states than moves that lead to them"
	}
	if r.Moves > 0 && (r.Ends == r.States || r.Depth > r.States) {
		return "it has more ends, or a longer path, than its states allow"
	}
	if c := r.Common; c != nil && (min(c.States, c.Ends, c.Merged, c.Moves) < 0 || c.States > r.States || c.Ends > r.Ends || c.Merged > r.Merged || c.Moves > r.Moves) {
		return "more is common to all shards than there is"
	}
	switch why := r.Cut != "" || len(r.Failures) > 0; {
	case r.Exhausted && why:
		return "it says that it is exhausted, and why it is not"
	case !r.Exhausted && !why:
		return "it says that it is not exhausted, and not why"
	case r.Exhausted && r.States == 0:
		return "it says that it is exhausted, and has seen no state"
	}
	for i, f := range r.Findings {
		if slices.ContainsFunc(r.Findings[:i], func(other explore.Finding) bool { return other.Anomaly == f.Anomaly }) {
			return fmt.Sprintf("it has %s twice", f.Anomaly)
		}
		if why := search.CheckFinding(f, search.ScriptName(s.strategy, f.Anomaly), s.strategy); why != "" {
			return why
		}
	}
	return ""
}

const (
	// finer is the number of shards into which a part is cut for sampling; one of them is searched.
	finer = 16
	// sampleLeast is the shortest time for checking a part on this machine. sampleShare is the
	// divisor of the part's own duration, used if the quotient is longer. Half of the time is for
	// the whole part, half for the sampled shard.
	sampleLeast = 4 * time.Second
	sampleShare = 10
)

// sample verifies the answer of an exhausted part. sample searches the part itself; if the time is
// not enough, it then searches a random shard of it. A part that is searched completely must match
// in states, moves, depth and number of findings; otherwise everything found here must be in the
// answer. Searches that vary are not sampled.
func (s *sharedSearch) sample(ctx context.Context, p *piece, r *explore.Result) error {
	if !r.Exhausted || s.Bound.Varies {
		return nil
	}
	half := max(sampleLeast, time.Since(p.began)/sampleShare) / 2
	b := s.Bound
	b.Reach = nil
	if p.of > 1 {
		b.Shard, b.Shards = p.shard, p.of
	}
	whole, err := s.searchHere(ctx, b, half, r)
	if err != nil || ctx.Err() != nil {
		return err
	}
	if whole.Exhausted {
		if whole.States != r.States || whole.Moves != r.Moves || whole.Depth != r.Depth || len(whole.Findings) != len(r.Findings) {
			return cells.Wrongly("it has %d states and %d moves, and this machine finds %d and %d", r.States, r.Moves, whole.States, whole.Moves)
		}
		return nil
	}
	if finer*p.of > explore.MaxShards {
		return nil
	}
	b.Shard, b.Shards = p.shard+p.of*s.Remote.Random.IntN(finer), finer*p.of
	_, err = s.searchHere(ctx, b, half, r)
	return err
}

// searchHere searches on this machine for at most d. searchHere returns a *WrongAnswer if the
// answer r lacks something that this search finds.
func (s *sharedSearch) searchHere(ctx context.Context, b explore.Bound, d time.Duration, r *explore.Result) (explore.Result, error) {
	within, cancel := context.WithTimeout(ctx, d)
	defer cancel()
	here, err := explore.Search(within, b, s.explorer, func(explore.Result) {})
	if err != nil && within.Err() == nil {
		return here, err
	}
	for _, f := range here.Findings {
		if !slices.ContainsFunc(r.Findings, func(other explore.Finding) bool { return other.Anomaly == f.Anomaly && other.Moves <= f.Moves }) {
			return here, cells.Wrongly("it has not found %s in %d moves, and this machine has", f.Anomaly, f.Moves)
		}
	}
	switch {
	case here.States > r.States, here.Moves > r.Moves:
		return here, cells.Wrongly("it has seen %d states and %d moves, and this machine sees more in a part of that", r.States, r.Moves)
	case here.Exhausted && here.Common != nil && r.Common != nil && *here.Common != *r.Common:
		return here, cells.Wrongly("what it says is common to all shards is not what this machine finds")
	}
	return here, nil
}

// drop removes items from the queue whose result follows from other parts.
func (s *sharedSearch) drop(ctx context.Context) error {
	var known func(p *piece, above bool) error
	known = func(p *piece, above bool) error {
		if p == nil {
			return nil
		}
		if (above || p.done()) && s.by[p.item.Name] != nil {
			delete(s.by, p.item.Name)
			if err := s.Remote.Drop(ctx, p.item); err != nil {
				return err
			}
		}
		above = above || p.result != nil
		return errors.Join(known(p.parts[0], above), known(p.parts[1], above))
	}
	var all []error
	for _, p := range s.pieces {
		all = append(all, known(p, false))
	}
	return errors.Join(all...)
}

// large is the waiting time after which a part is split into halves.
const large = 10 * time.Second

// split puts the halves of long-running parts into the queue if workers are idle. The part stays in
// the queue: whichever is answered first, the part or both halves, counts.
func (s *sharedSearch) split(ctx context.Context) error {
	state, err := s.Remote.State(ctx)
	if err != nil || state.Waiting > 0 {
		return err
	}
	var list []*piece
	for _, p := range s.by {
		if p.parts[0] == nil && time.Since(p.began) > large && 2*p.of <= explore.MaxShards {
			list = append(list, p)
		}
	}
	slices.SortFunc(list, func(a, b *piece) int { return a.began.Compare(b.began) })
	for _, p := range list[:min(len(list), state.Idle/2)] {
		for i := range p.parts {
			if p.parts[i], err = s.ask(ctx, p.shard+i*p.of, 2*p.of); err != nil {
				return err
			}
		}
	}
	return nil
}
