// Package explore searches all schedules of a lock's clients and servers within a bound, and
// reports the anomalies found or that none exists.
//
// A search enumerates scripts. The gate holds every request of every client ("hold … before any"),
// simulated time stands still, and each transition is one or more lines of the script language: a
// held request is passed, a client begins an operation, a fault happens, or time advances to the
// end of a lease. Each path of the search is therefore a script, and each finding can be played
// like any other script, in every world.
//
// A [Bound] and a [Player] come in, a [Result] goes out. The package depends on no world and no
// strategy: the Player plays the scripts. The package does not measure how often an anomaly occurs:
// package soak does.
package explore

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/lockfault/lockfault/checker"
	"github.com/lockfault/lockfault/internal/leases"
	"github.com/lockfault/lockfault/scenarios"
)

// A Bound limits a search. The zero value is not valid; [Bound.Check] returns what is wrong.
type Bound struct {
	// Clients is the number of clients, from 1 to [MaxClients].
	Clients int
	// Rounds is the number of times that each client tries to acquire the lock, at least 1.
	Rounds int
	// Nodes and Replicas are the numbers of nodes and of replicas per node in the script. Nodes is
	// 1 for a lock on a single node.
	Nodes, Replicas int
	// TTL is the lease.
	TTL time.Duration
	// Extend lets a holder extend its lease, and Reenter lets a holder try to acquire the lock that
	// it already holds. Each happens at most once per round, before the holder writes and releases.
	Extend, Reenter bool
	// OneThread gives the threads of all clients the same id, as threads of different processes may
	// have.
	OneThread bool
	// Retries is the number of times that the clients' library retries a command without a reply.
	Retries int
	// Budget is the largest number of faults of each kind on one path. A kind without an entry does
	// not happen.
	Budget map[BudgetKind]int
	// Moves is the largest number of transitions on a path; 0 means no limit.
	Moves int
	// States is the largest number of states to keep; 0 means no limit.
	States int
	// Runs is the number of scripts after which the search ends; 0 means no limit. The scripts that
	// were played together with the last one count, too.
	Runs int
	// UntilFirst ends the search at the first finding that is a bug.
	UntilFirst bool
	// Until ends the search at the first finding of one of these anomalies.
	Until []checker.Anomaly
	// WithoutTables plays every transition, including those whose effect is already in the tables.
	WithoutTables bool
	// Varies declares that two runs of one script may order events differently, which the author of
	// the lock knows. A run that differs is then not a failure, as it is for any other lock: the
	// search continues from the result that was seen, and a finding must show the same anomalies
	// each time it is played, but not an identical history.
	Varies bool

	// Lock is what is declared of the lock. By it each occurrence of an anomaly is judged.
	Lock leases.Lock `json:"-"`

	// Shard, from 1 to Shards, is the number of the part of the search to explore, and Shards is
	// the number of parts. Both are 0 to explore everything.
	Shard, Shards int

	// Reach, if not nil, returns the current limit on the transitions of a path; 0 means no limit.
	// The limit may shrink during the search, when the search of another shard has a finding. Only
	// the search calls Reach, never concurrently.
	Reach func() int `json:"-"`

	// plain disables the reductions: clients begin at any time and in any order. [Draw] and tests
	// set plain. apart, for tests, keeps every path separate, whatever state the path leads to.
	plain, apart bool
	// judged, if not nil, is called with each node after the node's anomalies are known.
	judged func(*searchNode, checker.Meta)
	// afresh plays each script from its beginning. The search sets afresh after a cached run failed
	// to clean up.
	afresh bool
}

// The largest numbers of a [Bound]. A search within smaller bounds already has more states than a
// machine can hold.
const (
	MaxClients = 26 // named A to Z
	MaxRounds  = 1000
	MaxBudget  = 1000 // of one kind of fault
	MaxMoves   = 1_000_000
	MaxStates  = 1_000_000_000
	MaxShards  = 10_000 // each shard repeats the part that all shards have in common
)

// Check returns an error if a bound of any origin is invalid. Invalid are numbers out of range,
// unknown faults or anomalies, and a lease or number of replicas that no script can have.
func (b Bound) Check() error {
	for _, n := range []struct {
		name            string
		is, least, most int
	}{
		{"clients", b.Clients, 1, MaxClients}, {"rounds", b.Rounds, 1, MaxRounds}, {"moves", b.Moves, 0, MaxMoves},
		{"states", b.States, 0, MaxStates}, {"runs", b.Runs, 0, MaxStates}, {"shards", b.Shards, 0, MaxShards}, {"shard", b.Shard, min(1, b.Shards), b.Shards},
	} {
		if n.is < n.least || n.is > n.most {
			return fmt.Errorf("%s %d: must be between %d and %d", n.name, n.is, n.least, n.most)
		}
	}
	for f, n := range b.Budget {
		switch {
		case !slices.Contains(BudgetKinds(), f):
			return fmt.Errorf("fault %q: unknown", f)
		case n < 0 || n > MaxBudget:
			return fmt.Errorf("%s %d: must be between 0 and %d", f, n, MaxBudget)
		}
	}
	for _, a := range b.Until {
		if !slices.Contains(checker.Anomalies(), a) {
			return fmt.Errorf("anomaly %q: unknown", a)
		}
	}
	_, err := scenarios.Parse("found.txt", []byte(b.script(nil, nil)))
	var syntax *scenarios.SyntaxError
	if errors.As(err, &syntax) {
		return errors.New(syntax.Message)
	}
	return err
}

// A Player plays scripts.
type Player interface {
	// Play plays scripts, in any order, and returns their outcomes in the order of trials. Play
	// blocks until all scripts are played or ctx is done. Its error ends the search.
	Play(ctx context.Context, trials []Trial) ([]Outcome, error)
	// PlayAlone plays a script in a process that has played nothing else.
	PlayAlone(ctx context.Context, trial Trial) (Outcome, error)
}

// A ResumingPlayer is a [Player] that keeps runs in a [RunCache].
type ResumingPlayer interface {
	Player
	// End ends all cached runs and returns a description of what went wrong with that; left is
	// empty if nothing did.
	End(ctx context.Context) (left string, err error)
}

// A Finding is a shortest script that shows an anomaly with its worst outcome.
type Finding struct {
	Anomaly checker.Anomaly `json:"anomaly"`
	// Outcome says what the anomaly means for the lock, and Reason completes the sentence "bug: …".
	Outcome leases.Outcome `json:"outcome"`
	Reason  string         `json:"reason"`
	// Script is the script, in the language of docs/script.md, with an expect line.
	Script string `json:"script"`
	// Anomalies are all anomalies that the script shows.
	Anomalies []checker.Anomaly `json:"anomalies"`
	// Moves is the number of transitions on the path, and Requests the number of requests delivered
	// on the path.
	Moves    int `json:"moves"`
	Requests int `json:"requests"`
	// ShrunkFrom is the number of transitions on the path before shrinking; 0 if the path was not
	// shrunk.
	ShrunkFrom int `json:"shrunk_from,omitempty"`
	// Course identifies the path among all paths of the same length, in a search with shards: the
	// number of the transition taken at each node, from 1.
	Course []int `json:"course,omitempty"`

	path [][]string // the lines of each transition
}

// A Result is the result of a search.
type Result struct {
	// Findings are in the order in which the search found them: shortest path first.
	Findings []Finding `json:"findings"`
	// States is the number of distinct states seen. Ends is the number of states in which every
	// client is done. Merged is the number of paths that led to a state already seen.
	States int `json:"states"`
	Ends   int `json:"ends"`
	Merged int `json:"merged"`
	// Moves is the number of transitions explored, and Runs the number of scripts played for them;
	// the effects of the other transitions were already in the tables. Depth is the length of the
	// longest path.
	Moves int `json:"moves"`
	Runs  int `json:"runs"`
	Depth int `json:"depth"`
	// Schedules is the number of schedules drawn to their ends; 0 for an exhaustive search.
	Schedules int `json:"schedules,omitempty"`
	// Untabled is the reason why the effect of one transition was not reused for other paths; empty
	// if it was reused, or if [Bound.WithoutTables] was set.
	Untabled string `json:"untabled,omitempty"`
	// Varied is the number of scripts whose beginning differed from the run that they continue, for
	// a lock with [Bound.Varies].
	Varied int `json:"varied,omitempty"`
	// Exhausted reports whether the search explored everything within the bound. If not, Cut is the
	// reason, unless there are Failures.
	Exhausted bool   `json:"exhausted"`
	Cut       string `json:"cut,omitempty"`
	// Common counts the part of the result that every shard repeats; nil without shards.
	Common *Counts `json:"common,omitempty"`
	// Failures are scripts that ended in an error, or whose outcome differed when they were played
	// again. A search with failures is not exhaustive.
	Failures []Failure `json:"failures,omitempty"`
	// Unjudged is the reason why server-side anomalies were not judged in some state; empty if they
	// were.
	Unjudged string `json:"unjudged,omitempty"`
	// Leak is a goroutine of the lock that outlived its client in some run, the first in the order of
	// their texts; empty if none was seen.
	Leak string `json:"leak,omitempty"`
}

// addLeak records a leak, unless it is empty.
func (r *Result) addLeak(leak string) {
	if leak != "" && (r.Leak == "" || leak < r.Leak) {
		r.Leak = leak
	}
}

// A Failure is a script without a usable outcome.
type Failure struct {
	Script string `json:"script"`
	Err    string `json:"error"`
}

// mostFailures is the number of failures that ends a search: a lock that fails so often cannot be
// searched.
const mostFailures = 10
