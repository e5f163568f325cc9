package runcmd

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/lockfault/lockfault/checker"
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
	unjudged  []*warning      // a lock each
	services  kit.ShortList   // what can't be judged of a service's locks
	said      map[string]bool // the texts of services
	by        map[string]int  // number of better cells, by the source of the expectation
	warnings  []*warning
	classes   []*classified
	longest   map[string]time.Duration // the longest wait for a free lock, by strategy
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
		group(&r.unjudged, c, c.Strategy, "judged by what clients were told alone", c.Unjudged.Message, false)
	case !r.said[text]: // the same text for every cell on that service
		if r.said == nil {
			r.said = map[string]bool{}
		}
		r.said[text] = true
		r.services.Add(text)
	}
	if c.ExpectedBy == reports.ByClass && c.Class != "" {
		r.classify(c)
	}
	if c.Leak != "" {
		r.warn(c, "a goroutine outlives its client", c.Leak+"; "+reports.LeakRemedy, true)
	}
	if text := c.LongWait(); text != "" && c.ExpectedBy == reports.ByClass {
		w := group(&r.warnings, c, c.Strategy, "waits long for a free lock", text, false)
		if r.longest == nil {
			r.longest = map[string]time.Duration{}
		}
		if wait := c.FreeWaits.Undisturbed; wait > r.longest[c.Strategy] {
			r.longest[c.Strategy], w.reason, w.scenario = wait, text, c.Scenario
		}
	}
	for _, f := range c.Findings {
		if c.ExpectedBy == reports.ByClass && f.Outcome == leases.Weakness {
			d, _ := checker.Describe(f.Anomaly)
			r.warn(c, f.Outcome.Words()+": "+string(f.Anomaly), f.Reason, d.Class == checker.Hygiene)
		}
	}
	if text := c.Improvement(); text != "" {
		if r.by == nil {
			r.by = map[string]int{}
		}
		if len(c.Better) > 0 {
			r.by[c.ExpectedBy]++
		}
		r.better.Add(of + text)
	}
}

// classified holds the locks that are judged by a class, declared or not.
type classified struct {
	class    leases.Class
	declared bool
	locks    []string
	findings map[string]map[leases.Outcome]int // by lock
}

// classify adds the cell's lock to its class, and counts the cell's findings.
func (r *runNotes) classify(c reports.Cell) {
	strategy, _ := r.registry.Lookup(c.Strategy)
	declared := slices.Contains(strategy.Tags, string(c.Class))
	i := slices.IndexFunc(r.classes, func(k *classified) bool { return k.class == c.Class && k.declared == declared })
	if i < 0 {
		i, r.classes = len(r.classes), append(r.classes, &classified{class: c.Class, declared: declared, findings: map[string]map[leases.Outcome]int{}})
	}
	k := r.classes[i]
	if !slices.Contains(k.locks, c.Strategy) {
		k.locks = append(k.locks, c.Strategy)
		k.findings[c.Strategy] = map[leases.Outcome]int{}
	}
	for _, f := range c.Findings {
		k.findings[c.Strategy][f.Outcome]++
	}
}

// printClasses writes what was found and what the locks were taken for, a line for each class.
func (r *runNotes) printClasses(w io.Writer) {
	var lines kit.ShortList
	for _, k := range r.classes {
		text := "judged as a lock of"
		if len(k.locks) > 1 {
			text = "judged as locks of"
		}
		text = fmt.Sprintf("%s: %s the class %s", strings.Join(k.locks, ", "), text, k.class)
		if !k.declared {
			text += "; to declare another class, add its name to the lock's tags (docs/leases.md)"
		}
		lines.Add(text)
	}
	for _, k := range r.classes {
		for _, lock := range k.locks {
			n := k.findings[lock]
			lines.Add(fmt.Sprintf("%s: %s, %s, %s", lock, kit.Count(n[leases.Bug], "bug", "bugs"),
				kit.Count(n[leases.Weakness], "avoidable weakness", "avoidable weaknesses"), kit.Count(n[leases.Limitation], "known limitation", "known limitations")))
		}
	}
	lines.Print(w)
}

// A warning is a weakness or a leak. It is printed once for all locks that show it for the same kind
// of reason, with the first reason.
type warning struct {
	text, kind       string
	reason, scenario string // of the first cell
	strategies       []string
	cells            int
	hygiene          bool // printed before others
}

// warn adds a cell to the warning with the same text and kind of reason: what is before its first colon.
func (r *runNotes) warn(c reports.Cell, text, reason string, hygiene bool) {
	kind, _, _ := strings.Cut(reason, ": ")
	group(&r.warnings, c, kind, text, reason, hygiene)
}

// group adds a cell to the warning of the list with the same text and kind, which it adds first if need
// be, and returns the warning.
func group(list *[]*warning, c reports.Cell, kind, text, reason string, hygiene bool) *warning {
	i := slices.IndexFunc(*list, func(w *warning) bool { return w.text == text && w.kind == kind })
	if i < 0 {
		i, *list = len(*list), append(*list, &warning{text: text, kind: kind, reason: reason, scenario: c.Scenario, hygiene: hygiene})
	}
	w := (*list)[i]
	if w.cells++; !slices.Contains(w.strategies, c.Strategy) {
		w.strategies = append(w.strategies, c.Strategy)
	}
	return w
}

func (w *warning) String() string {
	locks := w.strategies[0]
	if n := len(w.strategies) - 1; n > 0 {
		locks += " and " + kit.Count(n, "other", "others")
	}
	under := "under " + w.scenario
	if w.cells > 1 {
		under = fmt.Sprintf("in %s, such as %s", kit.Count(w.cells, "cell", "cells"), w.scenario)
	}
	return fmt.Sprintf("%s: %s %s: %s", locks, w.text, under, w.reason)
}

func (r *runNotes) printWarnings(out io.Writer) {
	for _, hygiene := range []bool{true, false} {
		var lines kit.ShortList
		for _, w := range r.warnings {
			if w.hygiene == hygiene {
				lines.Add(w.String())
			}
		}
		lines.Print(out)
	}
}

// print writes the notes and what the user can do about them. If quiet is true, it leaves out the
// classes and warnings.
func (r *runNotes) print(w io.Writer, quiet bool) {
	if !quiet {
		r.printClasses(w)
	}
	r.differing.Print(w)
	if !quiet {
		r.printWarnings(w)
	}
	r.better.Print(w)
	var unjudged kit.ShortList
	for _, note := range r.unjudged {
		unjudged.Add(note.String())
	}
	unjudged.Print(w)
	r.services.Print(w)
	if n := r.by[reports.ByFile]; n > 0 && r.accepted == nil {
		fmt.Fprintf(w, "better than %s says in %s: run with --accept to tighten it\n", r.o.Expect, kit.Count(n, "cell", "cells"))
	}
	if n := r.by[reports.ByStrategy]; n > 0 {
		fmt.Fprintf(w, "better than the strategies say themselves in %s: tighten their Expected\n", kit.Count(n, "cell", "cells"))
	}
	if keys := r.expected.Absent(); len(keys) > 0 {
		fmt.Fprintf(w, "%s: nothing was played of %s\n", r.o.Expect, strings.Join(keys, ", "))
	}
	if r.accepted != nil {
		r.accepted.Print(w)
	}
}

// traceOf returns the trace command for a cell of this run.
func (r *runNotes) traceOf(c reports.Cell) string {
	o := r.o
	scenario := c.Scenario
	if i := slices.IndexFunc(r.scripts, func(s selection.Chosen) bool { return s.Name == c.Scenario }); i >= 0 {
		scenario = cmp.Or(r.scripts[i].File, scenario)
	}
	args := shell.Command{r.program, "trace", c.Strategy, scenario}
	if o.Subject != nil && c.Strategy == o.Subject.Name {
		args = append(args, o.SubjectFlags.FlagArgs()...)
	}
	again := *o
	if again.TTL = o.Lease(); c.Twin != nil {
		again.TTL = cmp.Or(c.Lease, again.TTL)
	}
	args = append(args, again.InWorld(c.World)...)
	args.Flag(o.Expect != "", "expect", o.Expect)
	return shell.Line(args)
}
