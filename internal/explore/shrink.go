package explore

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/lockfault/lockfault/checker"
	"github.com/lockfault/lockfault/internal/harness"
	"github.com/lockfault/lockfault/internal/leases"
)

// A ShrinkResult is the result of shrinking a script.
type ShrinkResult struct {
	// Script is the shrunk script, in the language of docs/script.md, with an expect line.
	Script string
	// Anomaly is the anomaly that was kept, and Anomalies are all anomalies that the script shows.
	Anomaly   checker.Anomaly
	Anomalies []checker.Anomaly
	// Units is the number of units left, and From the number before shrinking. A unit is a
	// transition of a search, or a step of any other script.
	Units, From int
	// Plays is the number of candidates played.
	Plays int
	// Minimal reports whether each remaining unit was found to be needed. It is false if shrinking
	// was interrupted or reached the limit [MostPlays].
	Minimal bool
}

// MostPlays is the largest number of candidates played to shrink one script.
const MostPlays = 2000

// A NotShownError reports that a script does not show the anomaly to keep.
type NotShownError struct {
	Anomaly checker.Anomaly // empty for any anomaly
	Shows   []checker.Anomaly
}

// Error returns the anomalies that the script shows instead.
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

// A NotReproducibleError reports that a script, or its shrunk version, ended in an error or did not
// give the same result each time.
type NotReproducibleError struct{ Script, Why string }

// Error returns the reason.
func (e *NotReproducibleError) Error() string { return e.Why }

// Shrink returns a smaller script, whose units are steps, that still shows an anomaly of the given
// script: a, or the first anomaly if a is empty. Shrink tries removals in a fixed order and plays
// each candidate, so the result is reproducible. A candidate is accepted if it shows the anomaly
// and does not go beyond the original script:
//
//   - clients release or extend a lock that they do not hold, or never held, at most as often as
//     before,
//   - the script takes at most a tenth of a lease longer: a script that waits by chance is no
//     better than one with an explicit wait. A finding of a search may not take more time at all,
//   - for anomalies that are final only when no operation is in progress: no operation is in
//     progress at the end, unless one was before,
//   - for a finding of a search: no messages are held when the end of the path passes everything,
//     unless there were some before.
//
// Shrink blocks until it is done or ctx is done. In the latter case Shrink returns ctx's error and
// the smallest script so far, which was not played again. Other errors are [*NotShownError],
// [*NotReproducibleError], the error of [scenarios.Parse], and the player's error.
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

// ShrinkFindings shrinks the findings of a search in place, as [Shrink] does, with transitions as
// units. A finding that is not reproducible stays unchanged, and its script is added to the
// failures.
//
// ShrinkFindings blocks until it is done or ctx is done. When ctx is done, ShrinkFindings returns
// nil and leaves the remaining findings unchanged. The error is the player's.
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
			Anomaly: f.Anomaly, Outcome: s.outcome, Reason: s.reason, Script: shrunk.Script, Anomalies: shrunk.Anomalies, Moves: shrunk.Units, Requests: s.best.requests(),
			ShrunkFrom: shrunk.From, path: s.best.units,
		}
	}
	return nil
}

// unless returns err, or nil if the context is done.
func unless(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// A shrinker shrinks a candidate.
type shrinker struct {
	player  Player
	anomaly checker.Anomaly
	reason  string
	outcome leases.Outcome // the anomaly must keep this outcome, or have a worse one
	best    candidate
	shows   []checker.Anomaly // all anomalies that best shows
	ttl     time.Duration
	// The limits for candidates: what the original script did.
	longest time.Duration
	misuse  misuse
	busy    bool
	crowded bool

	memo  map[string]bool // whether a script was accepted
	plays int
	most  int // largest number of plays
}

func newShrinker(player Player, a checker.Anomaly, d candidate) *shrinker {
	return &shrinker{player: player, anomaly: a, best: d, memo: map[string]bool{}, most: MostPlays}
}

// run shrinks the candidate, whose outcome is look.
func (s *shrinker) run(ctx context.Context, look *Outcome, comment string) (ShrinkResult, error) {
	s.limits(look)
	s.shows = look.Anomalies
	if f := look.finding(s.anomaly); f != nil {
		s.outcome, s.reason = f.Outcome, f.Reason
	}
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

// blink is the extra duration allowed for a path. In a search, time stands still unless a fault
// moves it, and requests must not time out because a unit was removed.
const blink = time.Millisecond

// limits sets the limits for candidates from the outcome of the original script.
func (s *shrinker) limits(look *Outcome) {
	s.ttl = look.Meta.TTL
	s.longest, s.misuse, s.busy = look.Part.Took+s.ttl/10, misuses(look.Part.Events), busy(look)
	if s.best.path {
		s.longest, s.crowded = look.Part.Took+blink, s.best.crowded(look)
	}
}

// shrink tries all removals until none is accepted, starting with those that simplify a script
// most. Each accepted change removes something or renames what is left, so shrink terminates.
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

// clients removes clients with everything that they do.
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

// rounds removes single rounds of a client.
func (s *shrinker) rounds(ctx context.Context) (bool, error) {
	return s.lists(ctx, candidate.rounds)
}

// families removes faults together with the lines that end them, then other units that only make
// sense together.
func (s *shrinker) families(ctx context.Context) (bool, error) {
	return s.lists(ctx, candidate.families)
}

// lists removes the lists of units that of returns.
func (s *shrinker) lists(ctx context.Context, of func(candidate) [][]int) (bool, error) {
	return s.repeat(ctx, func(d candidate) (list []candidate) {
		for _, out := range of(d) {
			list = append(list, d.without(func(i int) bool { return slices.Contains(out, i) }))
		}
		return list
	})
}

// chunks removes consecutive units: half of all units, then a quarter, and so on.
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

// singles removes single units.
func (s *shrinker) singles(ctx context.Context) (bool, error) {
	return s.repeat(ctx, func(d candidate) (list []candidate) {
		for out := range slices.Backward(d.units) {
			list = append(list, d.without(func(i int) bool { return i == out }))
		}
		return list
	})
}

// measures reduces pauses, clock jumps and numbers of rounds, each by bisection.
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

// bisect minimizes a value, assuming that every value below a rejected one is rejected, too.
func (s *shrinker) bisect(ctx context.Context, unit, line int, m tunable) (changed bool, err error) {
	low, high := -1, m.now // the largest rejected and the smallest accepted value
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

// names renames the clients to A, B and so on, in the order of their first use.
func (s *shrinker) names(ctx context.Context) (bool, error) {
	return s.try(ctx, []candidate{s.best.renamed()})
}

// repeat tries candidates until none is accepted.
func (s *shrinker) repeat(ctx context.Context, candidates func(candidate) []candidate) (changed bool, err error) {
	for {
		did, err := s.try(ctx, candidates(s.best))
		if err != nil || !did {
			return changed, err
		}
		changed = true
	}
}

// abreast is the number of candidates played at a time; the first accepted one is used. abreast
// does not depend on the machine, so that the number of plays is the same everywhere.
const abreast = 4

// try sets best to the first accepted candidate of list, and reports whether there is one.
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
				continue // invalid or unchanged
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
				if f := look.finding(s.anomaly); f != nil {
					s.outcome, s.reason = f.Outcome, f.Reason
				}
				if s.best.path {
					s.longest = look.Part.Took + blink
				}
				return true, nil
			}
		}
	}
	return false, nil
}

// does reports whether a candidate with the given outcome is accepted.
func (s *shrinker) does(d candidate, look *Outcome) bool {
	if f := look.finding(s.anomaly); f != nil && s.outcome.Worse(f.Outcome) {
		return false
	}
	if look.Err != "" || !slices.Contains(look.Anomalies, s.anomaly) || look.Part.Took > s.longest || misuses(look.Part.Events).exceeds(s.misuse) {
		return false
	}
	if d.path && !s.crowded && d.crowded(look) {
		return false
	}
	return s.busy || !lasting(s.anomaly) || !busy(look)
}

// crowded reports whether messages were held when the end of a path passed everything. On a path of
// a search, each held message has its own transition, so that the search and not chance decides
// their order.
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

// lasting reports whether an anomaly is final only when no operation is in progress that could
// explain it.
func lasting(a checker.Anomaly) bool {
	d, _ := checker.Describe(a)
	return d.Lasting
}

// busy reports whether a client was in an operation at the end.
func busy(look *Outcome) bool {
	return slices.ContainsFunc(look.View.Clients, func(c harness.ClientView) bool { return c.Busy })
}

// A misuse counts the releases and extensions by clients that did not hold the lock, and by clients
// that had never held it. The lock is not to blame for their consequences. A script may be about
// the first kind.
type misuse struct{ idle, never int }

func (m misuse) exceeds(limit misuse) bool { return m.idle > limit.idle || m.never > limit.never }

// misuses counts the misuses in a history.
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
