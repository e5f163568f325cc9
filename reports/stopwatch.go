package reports

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"time"
)

// Measures summarizes the readings of the scenarios' stopwatches. The zero value is empty and ready
// for use. Measures is not safe for concurrent use.
type Measures struct {
	names  index
	ranges []readings // by place in names
}

// readings summarizes the readings of a stopwatch in a scenario.
type readings struct {
	n               int
	least, most     time.Duration
	leastBy, mostBy string
}

// Add adds the readings of a cell. Add ignores an undecided cell.
func (m *Measures) Add(c Cell) {
	if !c.Decided() {
		return
	}
	for _, name := range slices.Sorted(maps.Keys(c.Measures)) {
		took := c.Measures[name]
		place := m.names.place(c.Scenario + ": " + name)
		if place == len(m.ranges) {
			m.ranges = append(m.ranges, readings{})
		}
		r := &m.ranges[place]
		if r.n == 0 || took < r.least {
			r.least, r.leastBy = took, c.Strategy
		}
		if r.n == 0 || took > r.most {
			r.most, r.mostBy = took, c.Strategy
		}
		r.n++
	}
}

// Empty reports whether there are no readings.
func (m *Measures) Empty() bool { return len(m.ranges) == 0 }

// Write writes a line for each stopwatch of each scenario: its smallest and its largest reading,
// with their strategies.
func (m *Measures) Write(w io.Writer) error {
	b := newText(w)
	for i, name := range m.names.names {
		r := m.ranges[i]
		if r.least == r.most {
			fmt.Fprintf(b, "%s %v\n", name, r.least.Round(time.Millisecond))
			continue
		}
		fmt.Fprintf(b, "%s from %v (%s) to %v (%s)\n", name,
			r.least.Round(time.Millisecond), r.leastBy, r.most.Round(time.Millisecond), r.mostBy)
	}
	return b.Flush()
}
