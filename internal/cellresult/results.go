// Package cellresult converts the outcome of a cell into the [reports.Cell] that results.json
// stores. Commands, whose workers run the cells, and tests, which run cells in their own process,
// share the package. Its functions run no cells and write no files.
package cellresult

import (
	"maps"

	"github.com/lockfault/lockfault/internal/harness"
	"github.com/lockfault/lockfault/reports"
	"github.com/lockfault/lockfault/scenarios"
)

// Cell returns the result of a cell that was run, without its expectations and without the path of
// its history. [Expect] sets the expectations.
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

// Expect sets the expectation fields of a cell. A nil file means that the user gave no
// expectations. A cell with the verdict not-applicable gets no expected anomalies.
func Expect(cell *reports.Cell, played harness.Cell, file *scenarios.Expectations) {
	var e harness.Expectation
	if cell.Verdict != reports.NotApplicable {
		e = played.Expectation(file)
	}
	cell.Expected, cell.AtMost, cell.ExpectedBy = e.Anomalies, e.AtMost, string(e.By)
	cell.Drawn, cell.Chance = e.Drawn, e.Chance
	cell.Varies = played.Strategy.HistoryVaries
}
