package harness

import (
	"slices"

	"github.com/lockfault/lockfault/checker"
	"github.com/lockfault/lockfault/scenarios"
)

// Expectation holds the expected anomalies of a cell.
type Expectation struct {
	// Anomalies are in the order of [checker.Anomalies].
	Anomalies []checker.Anomaly
	// AtMost permits fewer anomalies. If AtMost is false, the cell must show exactly these
	// anomalies.
	AtMost bool
	By     Source
	// Drawn lists the strategy's own expected anomalies that occur by chance, independent of
	// Anomalies. Chance is the reason, which continues a sentence after "since"; Chance is empty if
	// Drawn is empty.
	Drawn  []checker.Anomaly
	Chance string
}

// Source is the origin of a cell's expectation.
type Source string

// Sources of an expectation. A file has priority over the strategy's own statement, and the
// strategy has priority over the script.
const (
	ByScript   Source = ""
	ByStrategy Source = "strategy" // [strategies.Strategy.Expected]
	ByFile     Source = "file"     // [scenarios.Expectations]
)

// Expectation returns the expected anomalies of the cell. The sources are, by priority, the user's
// file, if file is not nil and has the cell; the strategy itself; the script.
//
// A script's line is exact for built-in strategies, which its author knew, and for a strategy that
// the line names. For any other strategy, which matches by a tag, a pattern or because the line is
// for all, the line is an upper bound.
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
