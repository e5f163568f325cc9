// Package cellresult converts the outcome of a cell into the [reports.Cell] that results.json
// stores. Commands, whose workers run the cells, and tests, which run cells in their own process,
// share the package. Its functions run no cells and write no files.
package cellresult

import (
	"maps"
	"slices"
	"strings"

	"github.com/lockfault/lockfault/checker"
	"github.com/lockfault/lockfault/internal/harness"
	"github.com/lockfault/lockfault/internal/leases"
	"github.com/lockfault/lockfault/reports"
	"github.com/lockfault/lockfault/scenarios"
	"github.com/lockfault/lockfault/strategies"
)

// Cell returns the result of a cell that was run, without its expectations and without the path of
// its history. [Expect] sets the expectations.
func Cell(world string, played harness.Cell, o harness.Outcome) reports.Cell {
	cell := reports.Cell{
		World: world, Strategy: played.Strategy.Name, Scenario: played.Script.Name,
		Verdict: reports.Verdict(o.Status), Reason: o.Reason,
		RoundTrips: o.RoundTrips, Measures: maps.Clone(o.Measures),
		Virtual: o.Virtual, Elapsed: o.Elapsed, Leak: o.Leak,
	}
	cell.Derive(o.Verdict, o.History, leases.LockOf(played.Strategy))
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
	if e.By == harness.ByScript && byClass(played) {
		e.Anomalies, e.AtMost, e.By = leases.Excused(cell.Findings), true, reports.ByClass
	}
	cell.Expected, cell.AtMost, cell.ExpectedBy = e.Anomalies, e.AtMost, string(e.By)
	cell.Drawn, cell.Chance = e.Drawn, e.Chance
	cell.Varies = played.Strategy.HistoryVaries
}

// Reference returns the strategy with which a cell is compared that shows less than it may: the
// reference lock of the class, on as many nodes. Refuses says why the class grants less; see
// [leases.Class.Reference]. Reference returns false if the registry lacks that strategy, or if the
// cell's lock uses another service.
func Reference(lock strategies.Strategy, registry strategies.Registry) (reference strategies.Strategy, refuses string, ok bool) {
	class, _ := leases.ClassOf(checker.History{}, leases.LockOf(lock))
	name, refuses := class.Reference()
	reference, ok = registry.Lookup(name)
	if !ok || lock.RunsOn() != reference.RunsOn() {
		return reference, "", false
	}
	if on, err := reference.On(max(1, lock.Nodes)); err == nil {
		reference = on
	}
	return reference, refuses, true
}

// byClass reports whether a cell is judged by the class of its lock: the author of the script did not
// know the lock.
func byClass(played harness.Cell) bool {
	line, ok := played.Script.ExpectOf(played.Strategy.Name, played.Strategy.Tags)
	named := slices.Contains(line.For, scenarios.Selector(played.Strategy.Name))
	own := strings.HasSuffix(played.Script.Key(), ".txt") // a script of the user's, whose lines count
	return !played.Strategy.Builtin() && !named && !(own && ok)
}
