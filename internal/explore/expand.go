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

// reach finds the states to which transitions lead: known effects are looked up, the other
// transitions are played.
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

// A cacheStatus reports what the tables contain about a transition.
type cacheStatus int

const (
	isPlayed cacheStatus = iota // the effect depends on more than the key: always play
	isLearnt                    // the effect is not in the tables yet
	isKnown
)

// lookUp sets the state to which a transition leads, if the tables contain it.
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

// pendingKeys holds the keys that are about to be played for the first time.
type pendingKeys struct {
	moves   map[local]bool
	singles map[componentKey]bool
}

// of reports whether a transition must be played to learn its effect, and marks the keys as
// pending.
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

// errLeft reports that a cached run failed to clean up at its end. The script that caused the
// failure is not known.
var errLeft = errors.New("explore: a run that was kept left something behind")

// endRuns ends the runs that the player still keeps.
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

// play plays the scripts of the nodes and records their effects in the tables.
func (s *search) play(ctx context.Context, list []*searchNode) error {
	if len(list) == 0 {
		return nil // a check that is being played may continue
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

// take counts a script that was played, and learns from its outcome.
func (s *search) take(ctx context.Context, q *searchNode, look *Outcome) error {
	if look.Left != "" {
		return errLeft
	}
	s.result.Runs++
	s.result.addLeak(look.Leak)
	return s.learn(ctx, q, look)
}

// learn records the outcome of a script.
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
	// The assembled history is judged and must show the same anomalies as the played one.
	var weaver historyBuilder
	if got := checker.Check(weaver.telling(q.trail, s.meta)).Anomalies(); !slices.Equal(got, look.Anomalies) {
		return s.mistrust(ctx, q, look, fmt.Sprintf("it showed %v, and put together its history shows %v", look.Anomalies, got))
	}
	return nil
}

// differs compares the outcome of a script with the effects in the tables and returns the first
// difference, or "".
func (s *search) differs(q *searchNode, parts parts, look *Outcome) string {
	if before := q.trail.before; before != nil && before.footing().tally.digest() != look.Before {
		return otherwise
	}
	if !q.known {
		return ""
	}
	return s.tables.differs(parts, q.parts)
}

// mistrust finds out why a script contradicts the tables. Either the lock is not reproducible,
// which is a failure unless [Bound.Varies] is set, or the effect of a client's transition depends
// on other clients in a way that snapshots do not show. In the latter case the tables cannot be
// used.
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

// otherwise is the difference reported when the events before the last transition differ.
const otherwise = "the events before the last move differ, as they do if a select has two ready cases or a map is ranged over"

// first describes the first event that differs between two histories.
func first(got, want []checker.Event) string {
	for i := range min(len(got), len(want)) {
		if digest(got[i:i+1], roughly) != digest(want[i:i+1], roughly) {
			return fmt.Sprintf("%s, where there was: %s", brief(got[i]), brief(want[i]))
		}
	}
	return otherwise
}

// brief formats an event on one line, whatever its texts contain.
func brief(e checker.Event) string {
	words := []string{fmt.Sprintf("at %v", faults.Instant(e.Time)), string(e.Kind)}
	for _, word := range [...]string{e.Client, e.Node, string(e.Op), string(e.Result), e.Error, e.Command, e.Reply, e.Value, e.Text} {
		if word != "" {
			words = append(words, word)
		}
	}
	return strings.ReplaceAll(strings.Join(words, " "), "\n", "; ")
}
