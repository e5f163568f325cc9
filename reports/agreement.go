package reports

import (
	"bufio"
	"fmt"
	"slices"
	"strings"
)

// An Agreement compares the worlds of a run: whether each cell showed the same anomalies as in
// [Reference]. A cell that is not decided, or not applicable, in either world is not compared. An
// Agreement keeps a few bytes of each cell. The zero value is empty and ready for use. An Agreement
// is not safe for concurrent use.
type Agreement struct {
	reference map[[2]string]square
	worlds    index
	tallies   []agreement // by place in worlds
	differing []disagreement
	waiting   []entry
}

// agreement counts the cells of one world.
type agreement struct{ same, differ, apart int }

// disagreement describes a cell that differs from the reference.
type disagreement struct {
	world, strategy, scenario string
	here, there               set
}

// entry holds a cell of a world other than [Reference].
type entry struct {
	world string
	at    [2]string
	square
	twin *square // what to compare with, if not the reference
}

// Add adds a cell. Cells may come in any order. An unknown anomaly is an error.
func (a *Agreement) Add(c Cell) error {
	e, err := entryOf(c)
	switch {
	case err != nil:
		return err
	case c.World != Reference:
		a.waiting = append(a.waiting, e)
		return nil
	case a.reference == nil:
		a.reference = map[[2]string]square{}
	}
	a.reference[e.at] = e.square
	return nil
}

// entryOf returns the entry of a cell. An unknown anomaly is an error.
func entryOf(c Cell) (entry, error) {
	found, err := setOf(c.Anomalies)
	if err != nil {
		return entry{}, fmt.Errorf("%s under %s: %w", c.Strategy, c.Scenario, err)
	}
	e := entry{c.World, [2]string{c.Strategy, c.Scenario}, square{verdict: c.Verdict, found: found, asExpected: c.AsExpected}, nil}
	if c.Twin != nil {
		found, err = setOf(c.Twin.Anomalies)
		e.twin = &square{verdict: c.Twin.Verdict, found: found}
	}
	return e, err
}

// Of reports whether a cell agrees with the reference. Of returns nil if the cell cannot be
// compared. All cells of the reference must have been added before.
func (a *Agreement) Of(c Cell) *bool {
	e, err := entryOf(c)
	if err != nil || c.World == Reference {
		return nil
	}
	return a.compare(e)
}

func (a *Agreement) compare(e entry) *bool {
	there, ok := a.there(e)
	if !ok || !decided(there.verdict) || !decided(e.verdict) {
		return nil
	}
	same := there.found == e.found
	return &same
}

// there returns the result with which an entry is compared, and whether it exists.
func (a *Agreement) there(e entry) (square, bool) {
	if e.twin != nil {
		return *e.twin, true
	}
	there, ok := a.reference[e.at]
	return there, ok
}

// settle compares the added cells.
func (a *Agreement) settle() {
	for _, e := range a.waiting {
		place := a.worlds.place(e.world)
		if place == len(a.tallies) {
			a.tallies = append(a.tallies, agreement{})
		}
		t := &a.tallies[place]
		switch same := a.compare(e); {
		case same == nil && e.verdict == NotApplicable && a.reference[e.at].verdict == NotApplicable:
		case same == nil:
			t.apart++
		case *same:
			t.same++
		default:
			t.differ++
			there, _ := a.there(e)
			a.differing = append(a.differing, disagreement{e.world, e.at[0], e.at[1], e.found, there.found})
		}
	}
	a.waiting = nil
}

// Empty reports whether there are no two worlds to compare.
func (a *Agreement) Empty() bool {
	a.settle()
	return len(a.reference) == 0 || len(a.worlds.names) == 0
}

// Differing returns the number of cells that differ from the reference.
func (a *Agreement) Differing() int {
	a.settle()
	return len(a.differing)
}

// sharedProcessCause describes a cause of differences between worlds that lies in the lock, not in
// the worlds.
const sharedProcessCause = "in " + Reference + " all clients of a cell are one process: a lock that keeps state in package variables shares it among them there, and nowhere else"

// Lines returns a line for each world, followed by a line for each cell that differs. The line of a
// world has the number of its cells that agree with the reference.
func (a *Agreement) Lines() []string {
	a.settle()
	var lines []string
	for i, world := range a.worlds.names {
		t := a.tallies[i]
		line := fmt.Sprintf("%s agrees with %s in %d of %s", world, Reference, t.same, count(t.same+t.differ, "cell"))
		if t.apart > 0 {
			line += fmt.Sprintf("; %d could not be compared", t.apart)
		}
		lines = append(lines, line)
	}
	for _, d := range a.differing {
		lines = append(lines, fmt.Sprintf("%s under %s: %s in %s, %s in %s",
			d.strategy, d.scenario, d.there, Reference, d.here, d.world))
	}
	if len(a.differing) > 0 {
		lines = append(lines, sharedProcessCause)
	}
	return lines
}

// String lists the members, separated by commas.
func (s set) String() string {
	if s == 0 {
		return "nothing"
	}
	return names(s.list())
}

// markdown writes the section on agreement.
func (a *Agreement) markdown(b *bufio.Writer) {
	a.settle()
	b.WriteString("\n## Agreement of the worlds\n\n")
	for i, line := range a.Lines() {
		if i == len(a.worlds.names) {
			break
		}
		fmt.Fprintf(b, "- %s\n", escape(line))
	}
	if len(a.differing) == 0 {
		return
	}
	b.WriteString("\n| strategy | scenario | world | shows | " + Reference + " shows |\n|---|---|---|---|---|\n")
	for _, d := range a.differing {
		row := []string{d.strategy, d.scenario, d.world, d.here.String(), d.there.String()}
		fmt.Fprintf(b, "| %s |\n", strings.Join(each(row, escape), " | "))
	}
	fmt.Fprintf(b, "\nOne cause among others: %s.\n", escape(sharedProcessCause))
}

// A Comparison holds a [Matrix] for each world. The zero value is empty and ready for use. A
// Comparison is not safe for concurrent use.
type Comparison struct {
	worlds   index
	matrices []*Matrix // by place in worlds
}

// Add adds a cell.
func (c *Comparison) Add(cell Cell) error {
	place := c.worlds.place(cell.World)
	if place == len(c.matrices) {
		c.matrices = append(c.matrices, &Matrix{})
	}
	return c.matrices[place].Add(cell)
}

// Worlds returns the worlds in the order of their first cells, each with its matrix.
func (c *Comparison) Worlds() ([]string, []*Matrix) {
	return slices.Clone(c.worlds.names), slices.Clone(c.matrices)
}

// Tally returns the counts over all worlds.
func (c *Comparison) Tally() (all Tally) {
	for _, m := range c.matrices {
		for _, s := range m.squares {
			all.count(s)
		}
	}
	return all
}
