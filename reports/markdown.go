package reports

import (
	"bufio"
	"fmt"
	"io"
	"maps"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/lockfault/lockfault/checker"
)

// markdownTitle is the first line of a report.
const markdownTitle = "# lockfault report\n"

// mostDrawn is the number of list entries, in the section of cells that differ from their
// expectation, that may have a diagram.
const mostDrawn = 10

var formatMarkdown = Format{Name: "markdown", Write: Markdown}

// Markdown writes the report as Markdown: the comparison, the changes since an earlier run, the
// cells that differ from their expectation, the costs, and for each scenario the results with the
// proof of every anomaly.
func Markdown(w io.Writer, of Source) error {
	whole, err := newSurvey(of.Results)
	if err != nil {
		return err
	}
	head := whole.run
	b := newText(w)
	b.WriteString(markdownTitle + "\n")
	fmt.Fprintf(b, "lockfault %s, world %s, seed %d", escape(head.Version), escape(strings.ReplaceAll(head.World, ",", " and ")), head.Seed)
	if head.TTL > 0 {
		fmt.Fprintf(b, ", lease %v", head.TTL)
	}
	b.WriteString(".\n\n")
	if head.Interrupted {
		b.WriteString("**The run was interrupted: cells are missing.** So far, ")
	}
	fmt.Fprintf(b, "%s.\n", whole.all.Tally())

	if !whole.agree.Empty() {
		whole.agree.markdown(b)
	}
	if of.Since != nil {
		fmt.Fprintf(b, "\n## Since %s\n\n", escape(of.Since.Old.File))
		of.Since.sectionsMarkdown(b, "###")
	}
	names, matrices := whole.all.Worlds()
	for i, m := range matrices {
		if len(names) > 1 {
			fmt.Fprintf(b, "\n## Comparison in world %s\n\n", escape(names[i]))
		} else {
			b.WriteString("\n## Comparison\n\n")
		}
		m.markdown(b)
	}
	whole.markdown(b)
	for _, list := range []struct {
		title string
		of    func(Cell) string
		drawn bool // whether cells have diagrams
	}{
		{"Not as expected", Cell.Difference, true},
		{"Better than expected", improvement, false},
		{"Shows less, and grants less", lesser, false},
		{"By chance", Cell.ByChance, false},
		{"Judged in part", Cell.Reservation, false},
	} {
		titled, drawn := false, 0
		_, err = of.scan(func(c Cell) error {
			text := list.of(c)
			if text == "" {
				return nil
			}
			if !titled {
				fmt.Fprintf(b, "\n## %s\n\n", list.title)
				titled = true
			}
			fmt.Fprintf(b, "- %s under %s%s: %s\n", code(c.Strategy), code(c.Scenario), escape(in(c, names)), escape(text))
			if drawn++; list.drawn && drawn <= mostDrawn && len(c.Anomalies) > 0 {
				return cellDiagram(b, c, filepath.Dir(of.Results))
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	var strategies []string
	if len(matrices) > 0 {
		strategies = matrices[0].strategies.names
	}
	b.WriteString("\n## Costs\n\nRound trips of a success, the smallest number seen · commands that it sends to all nodes together, in most scenarios.")
	if len(head.Costs) > 0 {
		b.WriteString(" Then, straight on a real server, how many times a second so many\n" +
			"contenders together acquire and release the lock, and how long that takes each time.")
	}
	b.WriteString("\n\n")
	whole.costs.markdown(b, whole.commands, strategies, head.Costs)

	sections := sections{worlds: names}
	if _, err := of.scan(func(c Cell) error { sections.add(b, c); return nil }); err != nil {
		return err
	}
	sections.end(b)
	return b.Flush()
}

// markdown writes the comparison as a table.
func (m *Matrix) markdown(b *bufio.Writer) {
	fmt.Fprintf(b, "| scenario | %s |\n", strings.Join(each(m.strategies.names, escape), " | "))
	fmt.Fprintf(b, "|---%s|\n", strings.Repeat("|---", len(m.strategies.names)))
	for i, scenario := range m.scenarios.names {
		row := []string{escape(scenario)}
		for j := range m.strategies.names {
			text := escape(m.squareText(i, j))
			if s, ok := m.squares[[2]int{i, j}]; ok && !s.asExpected {
				text = "**" + text + "**"
			}
			row = append(row, text)
		}
		fmt.Fprintf(b, "| %s |\n", strings.Join(row, " | "))
	}
	fmt.Fprintf(b, "\n%s nothing found; %s not applicable; %s not played; **bold** differs from expectation",
		markHeld, markNotApplicable, markNotPlayed)
	t := m.Tally()
	for _, mark := range []struct {
		n          int
		sign, says string
	}{
		{t.Better, markBetter, "better than expected"},
		{t.Less, markLess, "shows less, and grants less"},
		{t.Chance, markChance, "by chance, another time more or less"},
		{t.Unjudged, markUnjudged, "judged by what clients were told alone"},
	} {
		if mark.n > 0 {
			fmt.Fprintf(b, "; %s %s", mark.sign, mark.says)
		}
	}
	if m.untested() {
		fmt.Fprintf(b, "; %s a line of the script met\nnothing, as its section says", markUntested)
	}
	b.WriteString(".\n")
	if text := m.varies(); text != "" {
		fmt.Fprintf(b, "\n%s.\n", escape(text))
	}
}

func (k roundTrips) markdown(b *bufio.Writer, commands typicalCounts, strategies []string, measured []Cost) {
	var contenders []int
	for _, c := range measured {
		if !slices.Contains(contenders, c.Contenders) {
			contenders = append(contenders, c.Contenders)
		}
	}
	slices.Sort(contenders)
	ops := []checker.Op{checker.Acquire, checker.TryAcquire, checker.Release, checker.Extend}
	ops = slices.DeleteFunc(ops, func(op checker.Op) bool {
		return !slices.ContainsFunc(strategies, func(s string) bool { _, ok := k[s][op]; return ok })
	})
	b.WriteString("| strategy |")
	for _, op := range ops {
		fmt.Fprintf(b, " %s |", escape(string(op)))
	}
	for _, n := range contenders {
		fmt.Fprintf(b, " pairs/s, %s | p50 | p99 |", count(n, "contender"))
	}
	fmt.Fprintf(b, "\n|---|%s%s\n", strings.Repeat("---|", len(ops)), strings.Repeat("---:|", 3*len(contenders)))
	for _, s := range strategies {
		fmt.Fprintf(b, "| %s |", escape(s))
		for _, op := range ops {
			trips, ok := k[s][op]
			n, counted := commands.of(s, op)
			switch {
			case ok && counted:
				fmt.Fprintf(b, " %d · %d |", trips, n)
			case ok:
				fmt.Fprintf(b, " %d |", trips)
			default:
				b.WriteString(" |")
			}
		}
		for _, n := range contenders {
			i := slices.IndexFunc(measured, func(c Cost) bool { return c.Strategy == s && c.Contenders == n })
			if i < 0 {
				b.WriteString(" | | |")
				continue
			}
			c := measured[i]
			fmt.Fprintf(b, " %.0f | %v | %v |", c.PairsPerSecond, c.P50.Round(time.Microsecond), c.P99.Round(time.Microsecond))
		}
		b.WriteByte('\n')
	}
}

// sections writes a section for each scenario, as its cells come.
type sections struct {
	worlds  []string
	heading string
	// Strategies of the section that held or were not applicable without remarks.
	held, notApplicable []string
	idle                []idle
}

// idle is a line of a script that matched nothing, with the affected strategies.
type idle struct {
	MetNothing
	with []string
}

func (s *sections) add(b *bufio.Writer, c Cell) {
	if heading := c.Scenario + in(c, s.worlds); heading != s.heading {
		s.end(b)
		*s = sections{worlds: s.worlds, heading: heading}
		fmt.Fprintf(b, "\n## %s\n\n", escape(heading))
	}
	for _, m := range c.MetNothing {
		s.metNothing(m, code(c.Strategy))
	}
	switch {
	case c.AsExpected && c.Verdict == Held && len(c.Measures) == 0 && c.Improvement() == "" && c.Unjudged == nil && c.ByChance() == "" && c.Unordered() == "" && c.Leak == "":
		s.held = append(s.held, code(c.Strategy))
		return
	case c.AsExpected && c.Verdict == NotApplicable:
		s.notApplicable = append(s.notApplicable, code(c.Strategy))
		return
	}
	fmt.Fprintf(b, "- %s: ", code(c.Strategy))
	switch {
	case !c.Decided():
		fmt.Fprintf(b, "**%s**", escape(c.Difference()))
	case len(c.Anomalies) > 0:
		fmt.Fprintf(b, "%s, %s", c.Verdict, escape(names(c.Anomalies)))
	default:
		fmt.Fprintf(b, "%s", c.Verdict)
	}
	if c.Decided() && !c.AsExpected {
		fmt.Fprintf(b, "; **%s**", escape(c.Difference()))
	}
	for _, text := range [...]string{c.Improvement(), c.ByChance(), c.Reservation(), c.leakText()} {
		if text != "" {
			fmt.Fprintf(b, "; %s", escape(text))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(c.Measures)) {
		fmt.Fprintf(b, "; %s %v", escape(name), c.Measures[name].Round(time.Millisecond))
	}
	if c.History != "" {
		fmt.Fprintf(b, " ([history](%s))", (&url.URL{Path: c.History}).EscapedPath())
	}
	b.WriteByte('\n')
	// An indented block after a nested list item would not be a code block.
	if _, stack, found := strings.Cut(c.Reason, "\n"); found && !c.Decided() {
		b.WriteByte('\n')
		lines := strings.Split(strings.Trim(stack, "\n"), "\n")
		for _, line := range lines[:min(len(lines), stackLines)] {
			fmt.Fprintf(b, "      %s\n", line)
		}
		if len(lines) > stackLines {
			fmt.Fprintf(b, "      … %d more lines in %s\n", len(lines)-stackLines, ResultsFile)
		}
		b.WriteByte('\n')
	}
	for _, w := range c.Witnesses {
		fmt.Fprintf(b, "  - %s: %s Events %s.", escape(string(w.Anomaly)), escape(w.Message), list(w.Events))
		if text := c.judgement(w.Anomaly); text != "" {
			fmt.Fprintf(b, " %s", escape(text))
		}
		b.WriteByte('\n')
	}
	if why := c.Unordered(); why != "" {
		fmt.Fprintf(b, "  - not linearizable: %s Events %s.\n", escape(why), list(c.Conflict.Events))
	}
}

// metNothing records that a line of the script matched nothing with a strategy.
func (s *sections) metNothing(m MetNothing, strategy string) {
	line := placed(&s.idle, func(line idle) bool { return line.MetNothing == m }, idle{MetNothing: m})
	line.with = append(line.with, strategy)
}

// stackLines is the largest number of lines of a stack trace in the report.
const stackLines = 30

// end writes the end of a section.
func (s *sections) end(b *bufio.Writer) {
	if len(s.held) > 0 {
		fmt.Fprintf(b, "- held: %s\n", strings.Join(s.held, ", "))
	}
	if len(s.notApplicable) > 0 {
		fmt.Fprintf(b, "- not applicable: %s\n", strings.Join(s.notApplicable, ", "))
	}
	slices.SortStableFunc(s.idle, func(x, y idle) int { return x.Line - y.Line })
	for _, line := range s.idle {
		fmt.Fprintf(b, "- %s: %s\n", line.text(code(line.Text)), strings.Join(line.with, ", "))
	}
}
