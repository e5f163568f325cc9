package explore

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/lockfault/lockfault/checker"
	"github.com/lockfault/lockfault/internal/harness"
)

// A ShrinkResult is a script that was made smaller.
type ShrinkResult struct {
	// Script is it, in the language of docs/script.md, with an expect line.
	Script string
	// Anomaly is the one that was kept, and Anomalies are all that the script shows.
	Anomaly   checker.Anomaly
	Anomalies []checker.Anomaly
	// Units is how many units are left of it, and From how many there were: moves of a search,
	// or steps of any other script.
	Units, From int
	// Plays is how many scripts were played for it.
	Plays int
	// Minimal reports whether it was seen that each unit is needed. It is false if
	// that was interrupted, or took more than [MostPlays].
	Minimal bool
}

// MostPlays is how many scripts are played at most to shrink one.
const MostPlays = 2000

// An NotShownError is the error of a script that does not show the anomaly that is to be kept.
type NotShownError struct {
	Anomaly checker.Anomaly // empty for any
	Shows   []checker.Anomaly
}

// Error says what it shows instead.
func (e *NotShownError) Error() string {
	if len(e.Shows) == 0 {
		return "it shows no anomaly"
	}
	words := make([]string, len(e.Shows))
	for i, a := range e.Shows {
		words[i] = string(a)
	}
	return fmt.Sprintf("it does not show %s, but %s", e.Anomaly, strings.Join(words, " "))
}

// An NotReproducibleError is the error of a script that can't be shrunk, or of what it was shrunk to: it ended in
// an error, or the lock does not do the same each time.
type NotReproducibleError struct{ Script, Why string }

// Error says why.
func (e *NotReproducibleError) Error() string { return e.Why }

// Shrink returns a smaller script, in which a unit is a step, that shows an anomaly which a script
// shows: the first of them, if none is named. It tries what can be left out, in one order, and plays each
// candidate: so the result is the same each time. A candidate counts if it shows the anomaly and stays
// within what the script did:
//
//   - no more releases and extensions by clients that don't hold the lock, nor by those that
//     never did,
//   - no more time, but for a tenth of a lease: a script that waits by chance is no better than
//     one that says so; for what a search has found, no more time at all,
//   - for anomalies that show when nothing more is under way: nothing more is,
//   - for what a search has found: an end that lets all through finds nothing held, unless
//     it did.
//
// It blocks until it is done or ctx is. Then the error is that of ctx, and what there is so far is
// returned; it was not played again. Other errors are [*NotShownError], [*NotReproducibleError], that of [scenarios.Parse], and the player's.
func Shrink(ctx context.Context, player Player, name string, text []byte, a checker.Anomaly) (ShrinkResult, error) {
	d, err := draftOfScript(name, text)
	if err != nil {
		return ShrinkResult{}, err
	}
	s := newShrinker(player, a, d)
	script, err := d.text("", nil)
	if err != nil {
		return ShrinkResult{}, err
	}
	look, err := steady(ctx, player, script, nil)
	if err != nil {
		return ShrinkResult{}, err
	}
	if a == "" && len(look.Anomalies) > 0 {
		s.anomaly = look.Anomalies[0]
	}
	if !slices.Contains(look.Anomalies, s.anomaly) {
		return ShrinkResult{}, &NotShownError{s.anomaly, look.Anomalies}
	}
	return s.run(ctx, &look, fmt.Sprintf("%s of %s, shrunk from %s.", s.anomaly, look.Meta.Strategy, name))
}

// ShrinkFindings shrinks what a search has found, as [Shrink] does; there a unit is a move. What is not the same
// when it is played again stays as it was, and the script is among the failures. It blocks until it
// is done or ctx is, whose error is none: what was not shrunk until then stays as it was. The error
// is the player's.
func ShrinkFindings(ctx context.Context, player Player, r *Result) error {
	for i := range r.Findings {
		f := &r.Findings[i]
		s := newShrinker(player, f.Anomaly, draftOf(*f))
		looks, err := player.Play(ctx, []Trial{{Script: f.Script}})
		if err != nil {
			return unless(ctx, err)
		}
		if looks[0].Err != "" || !slices.Contains(looks[0].Anomalies, f.Anomaly) {
			r.Failures = append(r.Failures, Failure{f.Script, "it did not show the same when it was played again: " + looks[0].Err})
			continue
		}
		shrunk, err := s.run(ctx, &looks[0], "")
		if unsound, ok := err.(*NotReproducibleError); ok {
			r.Failures = append(r.Failures, Failure{unsound.Script, unsound.Why})
			continue
		}
		if err != nil {
			return unless(ctx, err)
		}
		*f = Finding{
			Anomaly: f.Anomaly, Script: shrunk.Script, Anomalies: shrunk.Anomalies, Moves: shrunk.Units, Requests: s.best.requests(),
			ShrunkFrom: shrunk.From, path: s.best.units,
		}
	}
	return nil
}

// unless returns an error, unless it is that of the context.
func unless(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// A shrinker shrinks a draft.
type shrinker struct {
	player  Player
	anomaly checker.Anomaly
	best    candidate
	shows   []checker.Anomaly // the best, all of them
	ttl     time.Duration
	// Limits of what a candidate does, which are those of the script that it began with.
	longest time.Duration
	misuse  misuse
	busy    bool
	crowded bool

	memo  map[string]bool // whether a script will do
	plays int
	most  int // plays
}

func newShrinker(player Player, a checker.Anomaly, d candidate) *shrinker {
	return &shrinker{player: player, anomaly: a, best: d, memo: map[string]bool{}, most: MostPlays}
}

// run shrinks the draft, of which it is known how it ends.
func (s *shrinker) run(ctx context.Context, look *Outcome, comment string) (ShrinkResult, error) {
	s.limits(look)
	s.shows = look.Anomalies
	from := len(s.best.units)
	failed := s.shrink(ctx)
	script, err := s.best.text(comment, s.shows)
	if err != nil {
		return ShrinkResult{}, err
	}
	result := ShrinkResult{
		Script: script, Anomaly: s.anomaly, Anomalies: s.shows, Units: len(s.best.units), From: from,
		Plays: s.plays, Minimal: failed == nil && s.plays < s.most,
	}
	if failed != nil {
		return result, failed
	}
	_, err = steady(ctx, s.player, script, s.shows)
	return result, err
}

// blink is how much longer than before a path may take: in a search, time stands still unless a
// fault moves it, and requests must not run out of time because one of them was left out.
const blink = time.Millisecond

// limits has candidates stay within what a script did that ended like that.
func (s *shrinker) limits(look *Outcome) {
	s.ttl = look.Meta.TTL
	s.longest, s.misuse, s.busy = look.Part.Took+s.ttl/10, misuses(look.Part.Events), busy(look)
	if s.best.path {
		s.longest, s.crowded = look.Part.Took+blink, s.best.crowded(look)
	}
}

// shrink tries what can be left out, in the order of what makes a script simplest, until nothing can. Each step
// takes something away or renames what is left, so it ends.
func (s *shrinker) shrink(ctx context.Context) error {
	steps := []func(context.Context) (bool, error){s.clients, s.rounds, s.families, s.chunks, s.singles, s.names, s.measures}
	for again := true; again; {
		again = false
		for _, step := range steps {
			changed, err := step(ctx)
			if err != nil {
				return err
			}
			again = again || changed
		}
	}
	return nil
}

// clients leaves out clients with all that they do.
func (s *shrinker) clients(ctx context.Context) (bool, error) {
	return s.repeat(ctx, func(d candidate) (list []candidate) {
		for _, name := range slices.Backward(d.clients) {
			if len(d.clients) > 1 {
				list = append(list, d.withoutClient(name))
			}
		}
		return list
	})
}

// rounds leaves out a client's round.
func (s *shrinker) rounds(ctx context.Context) (bool, error) {
	return s.lists(ctx, candidate.rounds)
}

// families leaves out faults, with what ends them, and then what else makes sense only together.
func (s *shrinker) families(ctx context.Context) (bool, error) {
	return s.lists(ctx, candidate.families)
}

// lists leaves out lists of units.
func (s *shrinker) lists(ctx context.Context, of func(candidate) [][]int) (bool, error) {
	return s.repeat(ctx, func(d candidate) (list []candidate) {
		for _, out := range of(d) {
			list = append(list, d.without(func(i int) bool { return slices.Contains(out, i) }))
		}
		return list
	})
}

// chunks leaves out units that follow one another: half of them, a quarter, and so on.
func (s *shrinker) chunks(ctx context.Context) (changed bool, err error) {
	for size := len(s.best.units) / 2; size > 1; size /= 2 {
		did, err := s.repeat(ctx, func(d candidate) (list []candidate) {
			for from := 0; from < len(d.units); from += size {
				list = append(list, d.without(func(i int) bool { return i >= from && i < from+size }))
			}
			return list
		})
		if changed = changed || did; err != nil {
			return changed, err
		}
	}
	return changed, nil
}

// singles leaves out one unit.
func (s *shrinker) singles(ctx context.Context) (bool, error) {
	return s.repeat(ctx, func(d candidate) (list []candidate) {
		for out := range slices.Backward(d.units) {
			list = append(list, d.without(func(i int) bool { return i == out }))
		}
		return list
	})
}

// measures makes pauses shorter, jumps of clocks smaller, and rounds fewer, each by bisection.
func (s *shrinker) measures(ctx context.Context) (changed bool, err error) {
	for i := range s.best.units {
		for k := range s.best.units[i] {
			for _, m := range measuresOf(s.best.units[i][k], s.ttl) {
				did, err := s.bisect(ctx, i, k, m)
				if changed = changed || did; err != nil {
					return changed, err
				}
			}
		}
	}
	return changed, nil
}

// bisect makes a measure as small as it may be, as far as what is smaller than one that is too small is so, too.
func (s *shrinker) bisect(ctx context.Context, unit, line int, m tunable) (changed bool, err error) {
	low, high := -1, m.now // what is known not to do, and to do
	for high-low > 1 {
		at := low + (high-low)/2
		did, err := s.try(ctx, []candidate{s.best.withMeasure(unit, line, m, at)})
		switch {
		case err != nil:
			return changed, err
		case did:
			high, changed = at, true
		default:
			low = at
		}
	}
	return changed, nil
}

// names calls clients A, B and so on, in the order in which they come.
func (s *shrinker) names(ctx context.Context) (bool, error) {
	return s.try(ctx, []candidate{s.best.renamed()})
}

// repeat tries candidates until none of them will do.
func (s *shrinker) repeat(ctx context.Context, candidates func(candidate) []candidate) (changed bool, err error) {
	for {
		did, err := s.try(ctx, candidates(s.best))
		if err != nil || !did {
			return changed, err
		}
		changed = true
	}
}

// abreast is how many candidates are played at a time, of which the first that will do counts. It
// doesn't depend on the machine, so that plays are the same everywhere.
const abreast = 4

// try makes the first of the candidates that will do the best, and reports whether there was one.
func (s *shrinker) try(ctx context.Context, list []candidate) (bool, error) {
	best, err := s.best.text("", nil)
	if err != nil {
		return false, err
	}
	for some := range slices.Chunk(list, abreast) {
		texts := make([]string, len(some))
		looks := map[string]*Outcome{}
		var trials []Trial
		var which []candidate
		for i := range some {
			some[i] = some[i].recounted()
			text, err := some[i].text("", nil)
			if err != nil || text == best {
				continue // it is no script, or no other
			}
			texts[i] = text
			if _, known := s.memo[text]; !known && looks[text] == nil && s.plays+len(trials) < s.most {
				looks[text] = &Outcome{}
				trials, which = append(trials, Trial{Script: text}), append(which, some[i])
			}
		}
		if len(trials) > 0 {
			played, err := s.player.Play(ctx, trials)
			if err != nil {
				return false, err
			}
			s.plays += len(trials)
			for i, trial := range trials {
				looks[trial.Script] = &played[i]
				s.memo[trial.Script] = s.does(which[i], &played[i])
			}
		}
		for i, text := range texts {
			if look := looks[text]; look != nil && s.memo[text] {
				s.best, s.shows = some[i], look.Anomalies
				if s.best.path {
					s.longest = look.Part.Took + blink
				}
				return true, nil
			}
		}
	}
	return false, nil
}

// does reports whether a candidate that ended like that will do.
func (s *shrinker) does(d candidate, look *Outcome) bool {
	if look.Err != "" || !slices.Contains(look.Anomalies, s.anomaly) || look.Part.Took > s.longest || misuses(look.Part.Events).exceeds(s.misuse) {
		return false
	}
	if d.path && !s.crowded && d.crowded(look) {
		return false
	}
	return s.busy || !lasting(s.anomaly) || !busy(look)
}

// crowded reports whether messages were held when the end of a path let all through. On a path each that is held
// has a move of its own, so that the search, and not chance, decides which comes first.
func (d candidate) crowded(look *Outcome) bool {
	var lines []string
	for _, unit := range d.units {
		lines = append(lines, unit...)
	}
	steps := append(slices.Clip(look.Part.Steps), len(look.Part.Events))
	first := len(look.Part.Steps) - len(lines)
	for i, line := range lines {
		if words := strings.Fields(line); words[0] != "pass" || slices.Contains(words, "once") {
			continue
		}
		at := first + i
		if slices.ContainsFunc(look.Part.Events[steps[at]:steps[at+1]], func(e checker.Event) bool { return e.Kind == checker.Passed }) {
			return true
		}
	}
	return false
}

// lasting reports whether an anomaly is one that shows when nothing more is under way that might
// explain it.
func lasting(a checker.Anomaly) bool {
	return slices.Contains([]checker.Anomaly{checker.Unavailable, checker.StuckLock, checker.Starvation, checker.SelfDeadlock}, a)
}

// busy reports whether a client was in the middle of something at the end.
func busy(look *Outcome) bool {
	return slices.ContainsFunc(look.View.Clients, func(c harness.ClientView) bool { return c.Busy })
}

// misuse is how often clients released or extended a lock that they didn't hold, and how often they had
// never held it: what that shows is not the lock's fault. A script may be about the first.
type misuse struct{ idle, never int }

func (m misuse) exceeds(limit misuse) bool { return m.idle > limit.idle || m.never > limit.never }

// misuses counts.
func misuses(events []checker.Event) (m misuse) {
	holds, held := map[string]int{}, map[string]bool{}
	for _, e := range events {
		switch {
		case e.Kind == checker.Return && e.Result == checker.OK && (e.Op == checker.Acquire || e.Op == checker.TryAcquire):
			holds[e.Client]++
			held[e.Client] = true
		case e.Kind == checker.Lost || e.Kind == checker.Crash && e.Client != "":
			holds[e.Client] = 0
		case e.Kind == checker.Invoke && (e.Op == checker.Release || e.Op == checker.Extend):
			if holds[e.Client] == 0 {
				m.idle++
			}
			if !held[e.Client] {
				m.never++
			}
			if e.Op == checker.Release {
				holds[e.Client] = max(0, holds[e.Client]-1)
			}
		}
	}
	return m
}
