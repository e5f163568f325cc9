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
	// Drawn are those of which it is chance whether the cell shows them, whatever is expected: what the strategy may show of itself.
	// Chance says why, after "since"; empty if there are none.
	Drawn  []checker.Anomaly
	Chance string
}

// A Source is who says what is expected of a cell.
type Source string

// The sources: what a file says wins over what the strategy says of itself, and that
// over the script.
const (
	ByScript   Source = ""
	ByStrategy Source = "strategy" // [strategies.Strategy.Expected]
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
	var own, drawn []checker.Anomaly
	may, said := c.Strategy.Expected[key]
	for _, a := range checker.Anomalies() {
		if slices.Contains(may, string(a)) {
			own = append(own, a)
		}
	}
	chance := c.Strategy.Nondeterministic[key]
	if chance != "" {
		drawn = own
	}
	if file != nil {
		if may, said := file.Of(c.Strategy.Name, key); said {
			return Expectation{may, true, ByFile, drawn, chance}
		}
	}
	if said {
		return Expectation{own, true, ByStrategy, drawn, chance}
	}
	line, _ := c.Script.ExpectOf(c.Strategy.Name, c.Strategy.Tags)
	named := slices.Contains(line.For, scenarios.Selector(c.Strategy.Name))
	return Expectation{
		Anomalies: c.Script.Expected(c.Strategy.Name, c.Strategy.Tags),
		AtMost:    !named && !c.Strategy.Builtin(),
	}
}
