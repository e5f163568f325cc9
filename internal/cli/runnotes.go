package cli

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/lockfault/lockfault/internal/shell"
	"github.com/lockfault/lockfault/internal/stdio"
	"github.com/lockfault/lockfault/internal/worlds"
	"github.com/lockfault/lockfault/reports"
)

// runNotes collects notes on the cells of a run: differences, improvements and undecided
// server-side judgements.
type runNotes struct {
	program   string // the command name that a user types
	o         *playOptions
	scripts   []chosen
	expected  *expectations
	accepted  *acceptance // nil if nothing was accepted
	differing screen
	better    screen
	unjudged  screen
	said      map[string]bool // service-wide texts that unjudged already has
	by        map[string]int  // number of better cells, by the source of the expectation
}

// add records the notes on a cell.
func (r *runNotes) add(c reports.Cell) {
	place := ""
	if len(r.o.worlds) > 1 {
		place = " in " + c.World
	}
	of := fmt.Sprintf("%s under %s%s: ", c.Strategy, c.Scenario, place)
	if text := c.Difference(); text != "" {
		if c.Decided() && c.AtMost {
			text += "; see " + r.o.traceOf(r.program, c, r.scripts)
		} else if last := stdio.LastLineOfTail(c.Reason); last != "" && !c.Decided() {
			text += "; printed last: " + last
		}
		r.differing.add(of + text)
	}
	switch text := c.Reservation(); {
	case text == "":
	case len(c.Unjudged.Events) > 0:
		r.unjudged.add(of + text)
	case !r.said[text]: // the same text for every cell on that service
		if r.said == nil {
			r.said = map[string]bool{}
		}
		r.said[text] = true
		r.unjudged.add(text)
	}
	if text := c.Improvement(); text != "" {
		if r.by == nil {
			r.by = map[string]int{}
		}
		r.by[c.ExpectedBy]++
		r.better.add(of + text)
	}
}

// print writes the notes and what the user can do about them.
func (r *runNotes) print(w io.Writer) {
	r.differing.print(w)
	r.better.print(w)
	r.unjudged.print(w)
	if n := r.by[reports.ByFile]; n > 0 && r.accepted == nil {
		fmt.Fprintf(w, "better than %s says in %s: run with --accept to tighten it\n", r.o.expect, countCells(n))
	}
	if n := r.by[reports.ByStrategy]; n > 0 {
		fmt.Fprintf(w, "better than the strategies say themselves in %s: tighten their May\n", countCells(n))
	}
	if keys := r.expected.absent(); len(keys) > 0 {
		fmt.Fprintf(w, "%s: nothing was played of %s\n", r.o.expect, strings.Join(keys, ", "))
	}
	if r.accepted != nil {
		r.accepted.print(w)
	}
}

// screen keeps the first 40 lines and counts the rest; the report has all of them.
type screen struct {
	list []string
	more int
}

func (s *screen) add(line string) {
	const most = 40
	if len(s.list) == most {
		s.more++
		return
	}
	s.list = append(s.list, line)
}

func (s *screen) print(w io.Writer) {
	for _, line := range s.list {
		fmt.Fprintln(w, line)
	}
	if s.more > 0 {
		fmt.Fprintf(w, "and %d more\n", s.more)
	}
}

func countCells(n int) string {
	if n == 1 {
		return "1 cell"
	}
	return fmt.Sprintf("%d cells", n)
}

// traceOf returns the trace command for a cell of this run.
func (o *playOptions) traceOf(program string, c reports.Cell, scripts []chosen) string {
	scenario := c.Scenario
	if i := slices.IndexFunc(scripts, func(s chosen) bool { return s.Name == c.Scenario }); i >= 0 {
		scenario = cmp.Or(scripts[i].file, scenario)
	}
	args := []string{program, "trace", c.Strategy, scenario}
	if o.subject != nil && c.Strategy == o.subject.Name {
		args = append(args, o.subjectFlags.flagArgs()...)
	}
	if c.World != worlds.Sim {
		args = append(args, "--world", c.World)
		if o.failover != byReplicaOf {
			args = append(args, "--failover", o.failover)
		}
	}
	if o.seed != defaultSeed {
		args = append(args, "--seed", fmt.Sprint(o.seed))
	}
	if o.lease() != 0 || c.Twin != nil {
		args = append(args, "--ttl", cmp.Or(c.Lease, o.lease()).String())
	}
	if o.expect != "" {
		args = append(args, "--expect", o.expect)
	}
	for i, arg := range args {
		args[i] = shell.Quote(arg)
	}
	return strings.Join(args, " ")
}
