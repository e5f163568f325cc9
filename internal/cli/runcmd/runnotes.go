package runcmd

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/lockfault/lockfault/internal/cli/cells"
	"github.com/lockfault/lockfault/internal/cli/kit"
	"github.com/lockfault/lockfault/internal/cli/selection"
	"github.com/lockfault/lockfault/internal/shell"
	"github.com/lockfault/lockfault/internal/stdio"
	"github.com/lockfault/lockfault/reports"
	"github.com/lockfault/lockfault/strategies"
)

// runNotes collects notes on the cells of a run: differences, improvements and undecided
// server-side judgements.
type runNotes struct {
	program   string // the command name that a user types
	registry  strategies.Registry
	o         *cells.Settings
	scripts   []selection.Chosen
	expected  *cells.Expectations
	accepted  *cells.Acceptance // nil if nothing was accepted
	differing kit.ShortList
	better    kit.ShortList
	unjudged  kit.ShortList
	said      map[string]bool // service-wide texts that unjudged already has
	by        map[string]int  // number of better cells, by the source of the expectation
	leaks     []*leak
	classes   kit.ShortList   // the class of each lock that is judged by its class
	classed   map[string]bool // the strategies that classes already has
}

// add records the notes on a cell.
func (r *runNotes) add(c reports.Cell) {
	place := ""
	if len(r.o.Worlds) > 1 {
		place = " in " + c.World
	}
	of := fmt.Sprintf("%s under %s%s: ", c.Strategy, c.Scenario, place)
	if text := c.Difference(); text != "" {
		if c.Decided() && c.AtMost {
			text += "; see " + r.traceOf(c)
		} else if last := stdio.LastLineOfTail(c.Reason); last != "" && !c.Decided() {
			text += "; printed last: " + last
		}
		r.differing.Add(of + text)
	}
	switch text := c.Reservation(); {
	case text == "":
	case len(c.Unjudged.Events) > 0:
		r.unjudged.Add(of + text)
	case !r.said[text]: // the same text for every cell on that service
		if r.said == nil {
			r.said = map[string]bool{}
		}
		r.said[text] = true
		r.unjudged.Add(text)
	}
	if c.ExpectedBy == reports.ByClass && c.Class != "" && !r.classed[c.Strategy] {
		if r.classed == nil {
			r.classed = map[string]bool{}
		}
		r.classed[c.Strategy] = true
		text := fmt.Sprintf("%s: judged as a lock of the class %s", c.Strategy, c.Class)
		if strategy, _ := r.registry.Lookup(c.Strategy); !slices.Contains(strategy.Tags, string(c.Class)) {
			text += "; to declare another class, add its name to the lock's tags (docs/leases.md)"
		}
		r.classes.Add(text)
	}
	r.addLeak(c)
	if text := c.Improvement(); text != "" {
		if r.by == nil {
			r.by = map[string]int{}
		}
		r.by[c.ExpectedBy]++
		r.better.Add(of + text)
	}
}

// A leak is a goroutine of a lock that outlives its client, in a number of cells.
type leak struct {
	strategy, text, scenario string
	cells                    int
}

// addLeak counts the leak of a cell, if it has one.
func (r *runNotes) addLeak(c reports.Cell) {
	if c.Leak == "" {
		return
	}
	i := slices.IndexFunc(r.leaks, func(l *leak) bool { return l.strategy == c.Strategy && l.text == c.Leak })
	if i < 0 {
		i, r.leaks = len(r.leaks), append(r.leaks, &leak{c.Strategy, c.Leak, c.Scenario, 0})
	}
	r.leaks[i].cells++
}

// print writes the notes and what the user can do about them.
func (r *runNotes) print(w io.Writer) {
	r.classes.Print(w)
	var leaks kit.ShortList
	for _, l := range r.leaks {
		leaks.Add(fmt.Sprintf("%s: a goroutine outlives its client in %s, such as %s: %s; %s", l.strategy, countCells(l.cells), l.scenario, l.text, reports.LeakRemedy))
	}
	leaks.Print(w)
	r.differing.Print(w)
	r.better.Print(w)
	r.unjudged.Print(w)
	if n := r.by[reports.ByFile]; n > 0 && r.accepted == nil {
		fmt.Fprintf(w, "better than %s says in %s: run with --accept to tighten it\n", r.o.Expect, countCells(n))
	}
	if n := r.by[reports.ByStrategy]; n > 0 {
		fmt.Fprintf(w, "better than the strategies say themselves in %s: tighten their Expected\n", countCells(n))
	}
	if keys := r.expected.Absent(); len(keys) > 0 {
		fmt.Fprintf(w, "%s: nothing was played of %s\n", r.o.Expect, strings.Join(keys, ", "))
	}
	if r.accepted != nil {
		r.accepted.Print(w)
	}
}

func countCells(n int) string {
	if n == 1 {
		return "1 cell"
	}
	return fmt.Sprintf("%d cells", n)
}

// traceOf returns the trace command for a cell of this run.
func (r *runNotes) traceOf(c reports.Cell) string {
	o := r.o
	scenario := c.Scenario
	if i := slices.IndexFunc(r.scripts, func(s selection.Chosen) bool { return s.Name == c.Scenario }); i >= 0 {
		scenario = cmp.Or(r.scripts[i].File, scenario)
	}
	args := []string{r.program, "trace", c.Strategy, scenario}
	if o.Subject != nil && c.Strategy == o.Subject.Name {
		args = append(args, o.SubjectFlags.FlagArgs()...)
	}
	again := *o
	if again.TTL = o.Lease(); c.Twin != nil {
		again.TTL = cmp.Or(c.Lease, again.TTL)
	}
	args = append(args, again.InWorld(c.World)...)
	if o.Expect != "" {
		args = append(args, "--expect", o.Expect)
	}
	return shell.Line(args)
}
