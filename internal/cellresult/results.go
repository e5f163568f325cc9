// Package results turns what playing a cell yielded into what a report says about
// it: for commands, whose workers play the cells, and for tests that play them in
// their own process.
package cellresult

import (
	"maps"

	"github.com/lockfault/lockfault/internal/harness"
	"github.com/lockfault/lockfault/reports"
	"github.com/lockfault/lockfault/scenarios"
)

// Cell returns what results.json says about a cell that was played: all but what was
// expected of it and where its history is.
func Cell(world string, played harness.Cell, o harness.Outcome) reports.Cell {
	cell := reports.Cell{
		World: world, Strategy: played.Strategy.Name, Scenario: played.Script.Name,
		Verdict: reports.Verdict(o.Status), Reason: o.Reason,
		RoundTrips: o.RoundTrips, Measures: maps.Clone(o.Measures),
		Virtual: o.Virtual, Elapsed: o.Elapsed,
	}
	cell.Derive(o.Verdict, o.History)
	for _, m := range o.MetNothing {
		cell.MetNothing = append(cell.MetNothing, reports.MetNothing(m))
	}
	return cell
}

// Expect puts into a cell what is expected of it, by a user's file if there is one.
func Expect(cell *reports.Cell, played harness.Cell, file *scenarios.Expectations) {
	var e harness.Expectation
	if cell.Verdict != reports.NotApplicable {
		e = played.Expectation(file)
	}
	cell.Expected, cell.AtMost, cell.ExpectedBy = e.Anomalies, e.AtMost, string(e.By)
	cell.Drawn, cell.Chance = e.Drawn, e.Chance
	cell.Varies = played.Strategy.HistoryVaries
}
