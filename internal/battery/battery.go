// Package battery is the standard list of searches for a lock: each kind of fault alone, then each
// kind with a step of time. What a lock is searched for so does not depend on who knows which fault it
// fails by.
//
// What is declared of a lock comes in, searches and their results go out. The package plays nothing:
// an [explore.Player] does.
package battery

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/lockfault/lockfault/checker"
	"github.com/lockfault/lockfault/internal/explore"
	"github.com/lockfault/lockfault/internal/leases"
	"github.com/lockfault/lockfault/scenarios"
	"github.com/lockfault/lockfault/strategies"
)

// A Search is one search of the battery.
type Search struct {
	// Faults are the kinds of faults that happen; empty for none. The second of two is
	// [explore.Tick].
	Faults []explore.BudgetKind
	Bound  explore.Bound
}

// String returns the faults of the search, as in "crash" or "crash and tick".
func (s Search) String() string {
	if len(s.Faults) == 0 {
		return "no fault"
	}
	var words []string
	for _, f := range s.Faults {
		words = append(words, string(f))
	}
	text := strings.Join(words, " and ")
	if s.Bound.Retries > 0 {
		text += " with a retry"
	}
	return text
}

// pair reports whether the search has two kinds of faults.
func (s Search) pair() bool { return len(s.Faults) > 1 }

// order holds the kinds of faults, those first that break most locks.
var order = []explore.BudgetKind{
	explore.Advance, explore.LoseReply, explore.Cancel, explore.LoseRequest, explore.Crash, explore.ClientRestart,
	explore.Restart, explore.RestartEmpty, explore.Flush, explore.Hang, explore.ClientClock, explore.NodeClock, explore.NodeClockBack,
	explore.Pause, explore.Partition, explore.Failover,
}

// The numbers of scripts that a search may play. They decide how long a search takes, and are the same
// on each machine. A lock that renews its lease has more states with one kind of fault than another. A
// lock on several nodes has more than a search can see, and gets fewer scripts for that reason.
const (
	singleRuns   = 2000
	renewingRuns = 2500
	pairRuns     = 300

	majorityRuns     = 650
	majorityPairRuns = 150
)

// Searches returns the searches for a lock with a lease of ttl, or of the default for 0: first those with
// at most one kind of fault, which should be exhausted, then those of pairs.
func Searches(lock strategies.Strategy, ttl time.Duration) []Search {
	base := explore.Bound{
		Clients: 2, Rounds: 1, Nodes: max(1, lock.Nodes), TTL: cmp.Or(ttl, scenarios.Defaults().TTL),
		Extend:  slices.Contains(lock.Tags, strategies.TagExtending),
		Reenter: slices.Contains(lock.Tags, string(leases.Reentrant)),
		Lock:    leases.LockOf(lock), Varies: lock.HistoryVaries != "",
	}
	runs, inPair := singleRuns, pairRuns
	switch {
	case base.Nodes > 1:
		runs, inPair = majorityRuns, majorityPairRuns
	case slices.Contains(lock.Tags, strategies.TagRenewing):
		runs = renewingRuns
	}
	search := func(runs int, faults ...explore.BudgetKind) Search {
		b := base
		b.Budget, b.Runs = map[explore.BudgetKind]int{}, runs
		for _, f := range faults {
			b.Budget[f] = 1
		}
		b.Replicas = max(b.Replicas, b.Budget[explore.Failover])
		return Search{Faults: faults, Bound: b}
	}
	ticking := search(runs, explore.Tick)
	ticking.Bound.Budget[explore.Tick] = 2 // a renewal, and what follows it
	singles, pairs := []Search{search(runs), ticking}, []Search(nil)
	for _, f := range order {
		singles = append(singles, search(runs, f))
		pairs = append(pairs, search(inPair, f, explore.Tick))
	}
	retried := search(runs, explore.LoseReply)
	retried.Bound.Retries = 1
	return slices.Concat(singles, []Search{retried}, pairs)
}

// A Result is what the searches found.
type Result struct {
	// Findings holds the worst outcome of each anomaly, with a shortest script of it.
	Findings []Finding
	// Searched holds the searches that were made, with their numbers.
	Searched []Searched
	// Stopped reports that the rest was not made, since too many scripts had no verdict.
	Stopped bool
}

// mostFailures is the number of scripts without a verdict after which no further search is made. One that
// stops virtual time takes a second, and a lock that does so does it in most searches.
const mostFailures = 30

// Failures returns the number of scripts without a verdict.
func (r Result) Failures() (n int) {
	for _, s := range r.Searched {
		n += len(s.Failures)
	}
	return n
}

// States returns the number of states of all searches together. A state of two searches counts twice.
func (r Result) States() (n int) {
	for _, s := range r.Searched {
		n += s.States
	}
	return n
}

// Unfinished says which searches with at most one kind of fault were not exhausted, as a clause; empty if
// all were.
func (r Result) Unfinished() string {
	var cut []string
	singles := 0
	for _, s := range r.Searched {
		if s.pair() {
			continue
		}
		if singles++; !s.Exhausted {
			cut = append(cut, s.String())
		}
	}
	switch {
	case len(cut) == 0:
		return ""
	case len(cut) == singles:
		return fmt.Sprintf("not finished: all %d with at most one kind of fault", singles)
	}
	return "not finished: " + strings.Join(cut, ", ")
}

// Failure returns the first script without a verdict, and its search; nil if every script has one. A
// script has no verdict if the lock did not do the same each time, for example.
func (r Result) Failure() (*explore.Failure, Search) {
	for _, s := range r.Searched {
		if len(s.Failures) > 0 {
			return &s.Failures[0], s.Search
		}
	}
	return nil, Search{}
}

// Leak returns a goroutine of the lock that outlived its client in a search; empty if there was none.
func (r Result) Leak() (leak string) {
	for _, s := range r.Searched {
		leak = cmp.Or(leak, s.Leak)
	}
	return leak
}

// A Finding is a finding of one of the searches.
type Finding struct {
	explore.Finding
	Search Search
}

// Searched is a search that was made.
type Searched struct {
	Search
	explore.Result
}

// Run makes the searches one after the other, until too many scripts had no verdict. Tell, if not nil, is
// called after each. Run blocks until all are made or ctx is done; then the result has what was found so
// far, and the error is the cause. Other errors are the player's.
func Run(ctx context.Context, searches []Search, player explore.Player, tell func(Searched)) (Result, error) {
	var r Result
	best := map[checker.Anomaly]int{} // index in Findings
	for _, s := range searches {
		if r.Stopped = r.Failures() >= mostFailures; r.Stopped {
			break
		}
		result, err := explore.Search(ctx, s.Bound, player, nil)
		if err != nil {
			return r, fmt.Errorf("search with %s: %w", s, err)
		}
		done := Searched{s, result}
		r.Searched = append(r.Searched, done)
		for _, f := range result.Findings {
			i, known := best[f.Anomaly]
			switch {
			case !known:
				best[f.Anomaly] = len(r.Findings)
				r.Findings = append(r.Findings, Finding{f, s})
			case f.Outcome.Worse(r.Findings[i].Outcome):
				r.Findings[i] = Finding{f, s}
			}
		}
		if tell != nil {
			tell(done)
		}
		if ctx.Err() != nil {
			return r, context.Cause(ctx)
		}
	}
	return r, nil
}
