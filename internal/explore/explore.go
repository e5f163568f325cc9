// Package explore searches the ways in which a lock's clients and servers can meet
// for those that violate something, and says so when there is none within a bound.
//
// It is a search over scripts. Every request of every client is held by the gate
// (hold … before any), time stands still, and a move is a line or two of the script
// language: a held request is passed, a client begins, a fault happens, time goes on
// to the end of a lease. So a path of the search is a script, what it finds can be
// played like any other, in every world, and there is no second player.
//
// A [Bound] and a [Player] come in, a [Result] goes out. The package knows no world
// and no strategy: whoever plays the scripts does.
package explore

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/lockfault/lockfault/checker"
	"github.com/lockfault/lockfault/scenarios"
)

// A Bound says how far a search goes.
type Bound struct {
	// Clients take part, at least one and at most 26.
	Clients int
	// Rounds is how often each client tries to get the lock, at least 1.
	Rounds int
	// Nodes and Replicas are those of the script; Nodes is 1 for a lock on one.
	Nodes, Replicas int
	// TTL is the lease.
	TTL time.Duration
	// Extend lets a holder prolong its lease, and Reenter lets it try to get the lock that
	// it has, once in each round, before it writes and releases.
	Extend, Reenter bool
	// OneThread gives the threads of all clients one id, as those of several processes may have.
	OneThread bool
	// Retries is how often the clients' library repeats a command that got no answer.
	Retries int
	// Budget is how often each kind of fault may happen. Those that are not in it
	// don't.
	Budget map[Fault]int
	// Moves is the length of the longest path; 0 means any.
	Moves int
	// States is how many states may be kept; 0 means any number.
	States int
	// UntilFirst ends the search with the first violation.
	UntilFirst bool
	// Until ends the search with the first of these.
	Until []checker.Anomaly
	// WithoutTables has every move played, also those of which it is known what
	// they do.
	WithoutTables bool
	// Varies says of the lock that two runs of one script may differ in the order of what
	// happens, which its author knows. So that is no failure, as it is of any other: what such a script came to
	// is gone on from, and a finding has to show the same anomalies each time it is played, but not by the same history.
	Varies bool

	// Shard, from 1, is the part of the search that is looked at, of so many; both are 0
	// for all of it.
	Shard, Shards int

	// Reach, if not nil, returns how many moves paths may still have; 0 means any. It may become less during
	// the search, by what the search of another shard has found. Called by the search alone.
	Reach func() int `json:"-"`

	// For tests: without the reductions, so that clients begin at any time and in
	// any order; and with each path for itself, whatever it leads to.
	plain, apart bool
	// judged, if not nil, is called with each position of which it was found out what it shows.
	judged func(*searchNode, checker.Meta)
	// afresh has each script played from its beginning.
	afresh bool
}

// The largest numbers of a [Bound]. A search with fewer has more states than any machine holds.
const (
	MaxClients = 26 // they are called A to Z
	MaxRounds  = 1000
	MaxBudget  = 1000 // of one kind of fault
	MaxMoves   = 1_000_000
	MaxStates  = 1_000_000_000
	MaxShards  = 10_000 // each has what is common to all of them
)

// Check returns what is wrong with a bound of any origin: a number that is too large or too small,
// an unknown fault or anomaly, a lease or a number of replicas that no script can have.
func (b Bound) Check() error {
	for _, n := range []struct {
		name            string
		is, least, most int
	}{
		{"clients", b.Clients, 1, MaxClients}, {"rounds", b.Rounds, 1, MaxRounds}, {"moves", b.Moves, 0, MaxMoves},
		{"states", b.States, 0, MaxStates}, {"shards", b.Shards, 0, MaxShards}, {"shard", b.Shard, min(1, b.Shards), b.Shards},
	} {
		if n.is < n.least || n.is > n.most {
			return fmt.Errorf("%s %d: must be between %d and %d", n.name, n.is, n.least, n.most)
		}
	}
	for f, n := range b.Budget {
		switch {
		case !slices.Contains(Faults(), f):
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
	// Play plays scripts, in any order, and returns what came of each, in theirs.
	// It blocks until all are done, or ctx is; its error ends the search.
	Play(ctx context.Context, trials []Trial) ([]Outcome, error)
	// PlayAlone plays a script in a process that nothing else was played in.
	PlayAlone(ctx context.Context, trial Trial) (Outcome, error)
}

// A ResumingPlayer is a [Player] that keeps runs in a [RunCache].
type ResumingPlayer interface {
	Player
	// End ends them, and says what was wrong with that; nothing if it is empty.
	End(ctx context.Context) (left string, err error)
}

// A Finding is a shortest script that shows an anomaly.
type Finding struct {
	Anomaly checker.Anomaly `json:"anomaly"`
	// Script is it, in the language of docs/script.md, with an expect line.
	Script string `json:"script"`
	// Anomalies are all that it shows.
	Anomalies []checker.Anomaly `json:"anomalies"`
	// Moves is how long its path was, and Requests how many were delivered in it.
	Moves    int `json:"moves"`
	Requests int `json:"requests"`
	// ShrunkFrom is how long the path was from which this was shrunk; 0 if it wasn't.
	ShrunkFrom int `json:"shrunk_from,omitempty"`
	// Course says where among all paths of so many moves it is, in a search that has
	// shards: which move was made at each place, by its number there.
	Course []int `json:"course,omitempty"`

	path [][]string // the lines of each move
}

// A Result is what a search came to.
type Result struct {
	// Findings are in the order in which they were found: the shortest first.
	Findings []Finding `json:"findings"`
	// States is how many different ones were seen, Ends in how many of them everybody is
	// done, and Merged how often a path led to one that was known.
	States int `json:"states"`
	Ends   int `json:"ends"`
	Merged int `json:"merged"`
	// Moves is how many were looked at, and Runs how many scripts were played for
	// them; what the others do was known from those. Depth is the longest path.
	Moves int `json:"moves"`
	Runs  int `json:"runs"`
	Depth int `json:"depth"`
	// Schedules is how many were drawn to their ends; 0 for a search of all.
	Schedules int `json:"schedules,omitempty"`
	// Untabled says why what one script showed was not taken to hold for others; empty
	// if it was, or if nobody wanted that.
	Untabled string `json:"untabled,omitempty"`
	// Varied is how many scripts began otherwise than the one that they go on from, of a lock that
	// varies.
	Varied int `json:"varied,omitempty"`
	// Exhausted reports whether everything within the bound was seen. If not, Cut
	// says why, unless there are Failures.
	Exhausted bool   `json:"exhausted"`
	Cut       string `json:"cut,omitempty"`
	// Common is how much of that is in every shard; nil in a search that has none.
	Common *Counts `json:"common,omitempty"`
	// Failures are scripts that ended in an error, or came out differently when
	// they were played again; with any, the search is not exhaustive.
	Failures []Failure `json:"failures,omitempty"`
	// Unjudged says why anomalies of servers were not judged in some state.
	Unjudged string `json:"unjudged,omitempty"`
}

// A Failure is a script that came to nothing.
type Failure struct {
	Script string `json:"script"`
	Err    string `json:"error"`
}

// mostFailures ends a search: a lock that fails so often isn't one to be searched.
const mostFailures = 10
