// Package harness plays one script with one strategy in one world: the stage
// on which everything else meets. A [Cell] comes in; an [Outcome] with the
// history and its verdict goes out.
package harness

import (
	"testing"
	"time"

	"github.com/lockfault/lockfault/checker"
	"github.com/lockfault/lockfault/scenarios"
	"github.com/lockfault/lockfault/strategies"
)

// A Cell names one piece of work: the same cell always yields the same history.
type Cell struct {
	Strategy strategies.Strategy
	Script   *scenarios.Script
	// World is where to play; "sim" is the only one yet.
	World string
	// Seed decides latencies, tie-breaks and the strategies' randomness.
	Seed uint64
	// TTL replaces the script's lease; 0 keeps it.
	TTL time.Duration
}

// Status is the short answer of an [Outcome].
type Status string

// The statuses of an outcome, best first: a merged result is the worst of its
// parts, so that what failed or was not decided never passes as held.
const (
	NotApplicable Status = "not-applicable"
	Held          Status = "held"
	Unknown       Status = "unknown"
	Error         Status = "error"
	Violated      Status = "violated"
)

// An Outcome is what playing a cell yields.
type Outcome struct {
	Status Status
	// Reason says why, for NotApplicable, Unknown and Error; for Error it
	// may go on with a stack.
	Reason string
	// History and Verdict are empty for NotApplicable, and History is what
	// was recorded so far for Error and Unknown.
	History checker.History
	Verdict checker.Verdict
	// Expected is what the script expects of the strategy.
	Expected []checker.Anomaly
	// RoundTrips is, for each operation that succeeded at least once, the
	// smallest number of round trips that a success took.
	RoundTrips map[checker.Op]int
	// Measures are the readings of the script's stopwatches.
	Measures map[string]time.Duration
	// Virtual is the time that passed in the world, Elapsed outside.
	Virtual, Elapsed time.Duration
}

// Play plays the cell in a bubble of virtual time. It blocks until the cell is
// done; t is only used to make the bubble, never to report, and a strategy that
// panics in one of its own goroutines ends the process. Not safe for
// concurrent use.
func Play(t *testing.T, cell Cell) Outcome {
	_ = t
	return Outcome{Status: Error, Reason: "not built yet"}
}
