package harness

import (
	"slices"

	"github.com/lockfault/lockfault/checker"
	"github.com/lockfault/lockfault/scenarios"
)

// An Expectation is what a cell is judged by.
type Expectation struct {
	// Anomalies are in the order of [checker.Anomalies].
	Anomalies []checker.Anomaly
	// AtMost says that the cell need not show them all: fewer are better. Else it
	// has to show exactly these.
	AtMost bool
	By     Source
	// Chance says, after "since", why it is chance which of them the cell shows; empty if it isn't.
	Chance string
}

// A Source is who says what is expected of a cell.
type Source string

// The sources: what a file says wins over what the strategy says of itself, and that
// over the script.
const (
	ByScript   Source = ""
	ByStrategy Source = "strategy" // [strategies.Strategy.May]
	ByFile     Source = "file"     // [scenarios.Expectations]
)

// Expectation returns what is expected of the cell: what a user's file says, if there
// is one (nil is none) and it names the cell, or the strategy itself, or the script.
//
// A script's line is exact for strategies that are built in, whom its author knew,
// and for one that it names. A group knows no stranger: whoever is in it by a tag, a
// pattern or because all are may do better than the group.
func (c Cell) Expectation(file *scenarios.Expectations) Expectation {
	key := c.Script.Key()
	if file != nil {
		if may, said := file.Of(c.Strategy.Name, key); said {
			return Expectation{may, true, ByFile, c.Strategy.Chance[key]}
		}
	}
	if may, said := c.Strategy.May[key]; said {
		e := Expectation{AtMost: true, By: ByStrategy, Chance: c.Strategy.Chance[key]}
		for _, a := range checker.Anomalies() {
			if slices.Contains(may, string(a)) {
				e.Anomalies = append(e.Anomalies, a)
			}
		}
		return e
	}
	line, _ := c.Script.ExpectOf(c.Strategy.Name, c.Strategy.Tags)
	named := slices.Contains(line.For, scenarios.Selector(c.Strategy.Name))
	return Expectation{
		Anomalies: c.Script.Expected(c.Strategy.Name, c.Strategy.Tags),
		AtMost:    !named && !c.Strategy.Builtin(),
	}
}
