package explore

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/lockfault/lockfault/checker"
	"github.com/lockfault/lockfault/faults"
)

// reach finds out where moves lead: what is known is looked up, and the rest played.
func (s *search) reach(ctx context.Context, list []*searchNode) error {
	for todo := list; len(todo) > 0; {
		var play, later []*searchNode
		asked := pendingKeys{map[local]bool{}, map[componentKey]bool{}}
		for _, q := range todo {
			switch s.lookUp(q) {
			case isKnown:
				q.known = true
			case isLearnt:
				if !asked.of(q) {
					later = append(later, q)
					continue
				}
				fallthrough
			default:
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

// cacheStatus is what tables know of a move.
type cacheStatus int

const (
	isPlayed cacheStatus = iota // it is another move each time
	isLearnt                    // they don't know it yet
	isKnown
)

// lookUp takes over where a move leads, as far as it is known.
func (s *search) lookUp(q *searchNode) cacheStatus {
	switch {
	case s.bound.WithoutTables:
	case !s.halfway(q):
		return isLearnt
	case q.local:
		e := s.tables.effects[q.key]
		switch {
		case e == nil:
			return isLearnt
		case !e.wide:
			q.parts = e.apply(q.key, q.nodes, q.from)
			q.adds(&e.part)
			return isKnown
		}
	case q.spreads:
		to, added, known, wide := s.tables.spread(q.singles(), len(q.from.nodes))
		switch {
		case !known:
			return isLearnt
		case !wide:
			q.parts = to
			q.trail.adds(added...)
			return isKnown
		}
	}
	return isPlayed
}

// pendingKeys is what is about to be played for the first time.
type pendingKeys struct {
	moves   map[local]bool
	singles map[componentKey]bool
}

// of reports whether a move needs to be played to learn what it does.
func (asked pendingKeys) of(q *searchNode) (needed bool) {
	if q.half != nil && !q.half.known {
		q = q.half.searchNode
	}
	if q.local {
		needed = !asked.moves[q.key]
		asked.moves[q.key] = true
		return needed
	}
	for _, key := range q.singles() {
		needed = needed || !asked.singles[key]
		asked.singles[key] = true
	}
	return needed
}

// errLeft says that a run which was kept left something behind when it ended, and it isn't known for which
// script that would have shown.
var errLeft = errors.New("explore: a run that was kept left something behind")

// endRuns ends those that are kept still.
func (s *search) endRuns(ctx context.Context) error {
	keeper, ok := s.player.(ResumingPlayer)
	if !ok {
		return nil
	}
	left, err := keeper.End(ctx)
	if left != "" {
		return errLeft
	}
	return err
}

// play plays what leads to some positions, and learns from it.
func (s *search) play(ctx context.Context, list []*searchNode) error {
	if len(list) == 0 {
		return nil // what is being played may go on
	}
	if err := s.checked(ctx); err != nil || s.result.Untabled != "" {
		return err
	}
	trials := make([]Trial, len(list))
	for i, q := range list {
		trials[i] = s.bound.trial(q.trail)
		if h := q.half; h != nil && !h.known {
			trials[i].Half = trials[i].Mark + len(h.trail.lines)
		}
		trials[i].Last = q.closed
	}
	looks, err := s.player.Play(ctx, trials)
	if err != nil {
		return err
	}
	for i, q := range list {
		if err := s.take(ctx, q, &looks[i]); err != nil || s.result.Untabled != "" {
			return err
		}
	}
	return nil
}

// acquire counts a script that was played, and learns from what it came to.
func (s *search) take(ctx context.Context, q *searchNode, look *Outcome) error {
	if look.Left != "" {
		return errLeft
	}
	s.result.Runs++
	return s.learn(ctx, q, look)
}

// learn takes note of what a script came to.
func (s *search) learn(ctx context.Context, q *searchNode, look *Outcome) error {
	q.outcome = look
	if look.Err != "" {
		return nil
	}
	s.meta = look.Meta
	parts := s.tables.parts(look.View)
	switch differs := s.differs(q, parts, look); {
	case differs == "":
	case s.bound.Varies && s.bound.WithoutTables:
		s.result.Varied++
	default:
		return s.mistrust(ctx, q, look, differs)
	}
	if h := q.half; h != nil && !h.known {
		s.learnHalf(q, look)
	}
	switch {
	case q.known || s.bound.WithoutTables:
	case q.local:
		s.tables.learn(q.key, q.nodes, q.from, parts, q.rest(look.Part))
	case q.spreads:
		s.tables.learnSpread(q.singles(), q.from, parts, look.Part)
	}
	q.parts = parts
	if !q.known {
		q.trail.adds(&pathSegment{Part: look.Part})
	}
	if s.bound.WithoutTables {
		return nil
	}
	// What is put together is judged like what happened.
	var weaver historyBuilder
	if got := checker.Check(weaver.telling(q.trail, s.meta)).Anomalies(); !slices.Equal(got, look.Anomalies) {
		return s.mistrust(ctx, q, look, fmt.Sprintf("it showed %v, and put together its history shows %v", look.Anomalies, got))
	}
	return nil
}

// differs compares what happened in a script with what the tables say of its moves;
// it returns the first difference, or nothing.
func (s *search) differs(q *searchNode, parts parts, look *Outcome) string {
	if before := q.trail.before; before != nil && before.footing().tally.digest() != look.Before {
		return otherwise
	}
	if !q.known {
		return ""
	}
	return s.tables.differs(parts, q.parts)
}

// mistrust finds out why a script didn't come to what the tables say: whether the lock does
// not do the same each time, which is a failure unless it is known for that, or what one client does depends on what
// another has done, in ways that nothing shows. Then the tables are of no use.
func (s *search) mistrust(ctx context.Context, q *searchNode, look *Outcome, differs string) error {
	trial := s.bound.trial(q.trail)
	again, err := s.player.PlayAlone(ctx, trial)
	if err != nil {
		return err
	}
	whole, err := s.player.PlayAlone(ctx, Trial{Script: trial.Script})
	if err != nil {
		return err
	}
	if differs == otherwise {
		differs = first(whole.Part.Events, q.trail.before.history())
	}
	if !s.bound.WithoutTables && (s.bound.Varies || again.Err == "" && again.same(look)) {
		s.result.Untabled = differs
		return nil
	}
	q.outcome = &Outcome{Err: "the lock did not do the same when the script was played again: " + differs}
	return nil
}

// otherwise says that it was not the last move that came to something else.
const otherwise = "what had happened before did so in another way"

// first shows the first event of a history that stands differently in another.
func first(got, want []checker.Event) string {
	for i := range min(len(got), len(want)) {
		if digest(got[i:i+1], faults.Instant) != digest(want[i:i+1], faults.Instant) {
			return fmt.Sprintf("%s, where there was: %s", brief(got[i]), brief(want[i]))
		}
	}
	return otherwise
}

// brief shows an event on one line, whatever its errors are made of.
func brief(e checker.Event) string {
	words := []string{fmt.Sprintf("at %v", faults.Instant(e.Time)), string(e.Kind)}
	for _, word := range [...]string{e.Client, e.Node, string(e.Op), string(e.Result), e.Error, e.Command, e.Reply, e.Value, e.Text} {
		if word != "" {
			words = append(words, word)
		}
	}
	return strings.ReplaceAll(strings.Join(words, " "), "\n", "; ")
}
