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
	"github.com/lockfault/lockfault/internal/leases"
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
	warnings  []*warning
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
	if c.Leak != "" {
		r.warn(c, "a goroutine outlives its client", c.Leak+"; "+reports.LeakRemedy)
	}
	for _, f := range c.Findings {
		if c.ExpectedBy == reports.ByClass && f.Outcome == leases.Weakness {
			r.warn(c, f.Outcome.Words()+": "+string(f.Anomaly), f.Reason)
		}
	}
	if text := c.Improvement(); text != "" {
		if r.by == nil {
			r.by = map[string]int{}
		}
		r.by[c.ExpectedBy]++
		r.better.Add(of + text)
	}
}

// A warning is what cells of a strategy show that is no bug, told once with the first reason.
type warning struct {
	strategy, text, scenario, reason string
	cells                            int
}

// warn adds a cell to the warning with the same text and kind of reason, which ends at a colon.
func (r *runNotes) warn(c reports.Cell, text, reason string) {
	kind, _, _ := strings.Cut(reason, ": ")
	i := slices.IndexFunc(r.warnings, func(w *warning) bool {
		return w.strategy == c.Strategy && w.text == text && strings.HasPrefix(w.reason, kind)
	})
	if i < 0 {
		i, r.warnings = len(r.warnings), append(r.warnings, &warning{c.Strategy, text, c.Scenario, reason, 0})
	}
	r.warnings[i].cells++
}

// byStrategy orders the warnings by their strategies, in the order in which these came first.
func (r *runNotes) byStrategy() []*warning {
	first := map[string]int{}
	for i, w := range r.warnings {
		if _, ok := first[w.strategy]; !ok {
			first[w.strategy] = i
		}
	}
	slices.SortStableFunc(r.warnings, func(a, b *warning) int { return cmp.Compare(first[a.strategy], first[b.strategy]) })
	return r.warnings
}

func (r *runNotes) printWarnings(w io.Writer) {
	var warnings kit.ShortList
	for _, x := range r.byStrategy() {
		under := "under " + x.scenario
		if x.cells > 1 {
			under = fmt.Sprintf("in %s, such as %s", countCells(x.cells), x.scenario)
		}
		warnings.Add(fmt.Sprintf("%s: %s %s: %s", x.strategy, x.text, under, x.reason))
	}
	warnings.Print(w)
}

// print writes the notes and what the user can do about them. If quiet is true, it leaves out the
// classes and warnings.
func (r *runNotes) print(w io.Writer, quiet bool) {
	if !quiet {
		r.classes.Print(w)
		r.printWarnings(w)
	}
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
