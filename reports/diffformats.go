package reports

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/lockfault/lockfault/internal/printable"
	"github.com/lockfault/lockfault/reports/page"
)

// DiffFormats returns the formats in which a [Diff] can be written.
func DiffFormats() []string { return []string{"text", "markdown", "html", "json", AnnotationsForm} }

// Write writes the differences in one of [DiffFormats].
func (d *Diff) Write(w io.Writer, format string) error {
	switch format {
	case "text":
		return d.text(w)
	case "markdown":
		return d.markdown(w)
	case "html":
		return page.Compare(w, *d.page())
	case "json":
		return d.json(w)
	case AnnotationsForm:
		b := newText(w)
		d.annotations(b)
		return b.Flush()
	}
	return fmt.Errorf("reports: there is no format %q: there are %s", format, strings.Join(DiffFormats(), ", "))
}

// A group holds the cells of a strategy that changed in the same way.
type group struct {
	strategy, text string
	scenarios      []string
}

// A section holds the cells with the same kind of change.
type section struct {
	ChangeKind
	groups []group
}

// sections groups the changes with the same text and strategy. sections keeps their order, which is
// worst first.
func (d *Diff) sections() (list []section) {
	worlds := map[string]bool{}
	for _, c := range d.Changes {
		worlds[c.World] = true
	}
	for _, c := range d.Changes {
		if len(list) == 0 || list[len(list)-1].ChangeKind != c.Become {
			list = append(list, section{ChangeKind: c.Become})
		}
		s := &list[len(list)-1]
		g := placed(&s.groups, func(g group) bool { return g.strategy == c.Strategy && g.text == c.Text }, group{strategy: c.Strategy, text: c.Text})
		name := c.Scenario
		if len(worlds) > 1 {
			name += " in " + c.World
		}
		g.scenarios = append(g.scenarios, name)
	}
	return list
}

// text describes the change of a cost in a line.
func (c CostChange) text() string {
	text := fmt.Sprintf("%s: %s, now %s", c.What, c.Old, c.New)
	if c.Ratio > 0 {
		text += fmt.Sprintf(" (%.2f times", c.Ratio)
		if c.Within {
			text += ", within the spread"
		}
		text += ")"
	}
	return text
}

func (s Side) text() string {
	return fmt.Sprintf("%s (lockfault %s, world %s, %s)", s.File, s.Version, strings.ReplaceAll(s.World, ",", " and "), count(s.Cells, "cell"))
}

// mostUnder is the largest number of scenarios listed for a change on a terminal and in
// annotations. The other formats list all.
const mostUnder = 12

func (d *Diff) text(w io.Writer) error {
	b := newText(w)
	fmt.Fprintf(b, "old  %s\nnew  %s\n", shortLine(d.Old.text()), shortLine(d.New.text()))
	for _, note := range d.Notes {
		fmt.Fprintf(b, "     %s\n", shortLine(note))
	}
	for _, section := range d.sections() {
		fmt.Fprintf(b, "\n%s\n", strings.ToLower(section.title()))
		for _, g := range section.groups {
			fmt.Fprintf(b, "  %s: %s\n      under %s\n", shown(g.strategy), g.text, some(each(g.scenarios, shown), mostUnder))
		}
	}
	if len(d.Costs) > 0 {
		b.WriteString("\ncosts\n")
		for _, c := range d.Costs {
			fmt.Fprintf(b, "  %s: %s\n", shown(c.Strategy), shortLine(c.text()))
		}
	}
	fmt.Fprintf(b, "\n%s\n", d.Tally())
	return b.Flush()
}

func (d *Diff) markdown(w io.Writer) error {
	b := newText(w)
	b.WriteString("# lockfault compare\n\n")
	d.sectionsMarkdown(b, "##")
	return b.Flush()
}

// sectionsMarkdown writes the changes below a title, with headings of the given level.
func (d *Diff) sectionsMarkdown(b *bufio.Writer, level string) {
	fmt.Fprintf(b, "%s.\n\n", d.Tally())
	fmt.Fprintf(b, "- old: %s\n- new: %s\n", escape(d.Old.text()), escape(d.New.text()))
	for _, note := range d.Notes {
		fmt.Fprintf(b, "- %s\n", escape(note))
	}
	for _, section := range d.sections() {
		fmt.Fprintf(b, "\n%s %s\n\n| strategy | what | under |\n|---|---|---|\n", level, section.title())
		for _, g := range section.groups {
			fmt.Fprintf(b, "| %s | %s | %s |\n", escape(g.strategy), escape(g.text), escape(strings.Join(g.scenarios, ", ")))
		}
	}
	if len(d.Costs) > 0 {
		fmt.Fprintf(b, "\n%s Costs that changed\n\n| strategy | what | old | new | times |\n|---|---|---|---|---|\n", level)
		for _, c := range d.Costs {
			fmt.Fprintf(b, "| %s | %s | %s | %s | %s |\n", escape(c.Strategy), escape(c.What), escape(c.Old), escape(c.New), c.times())
		}
	}
}

// annotations writes a line for each group of cells that got worse or became undecided, in the
// format of [Annotations], and then the counts.
func (d *Diff) annotations(b *bufio.Writer) {
	level := map[ChangeKind]string{Worse: "error", Lost: "warning"}
	for _, section := range d.sections() {
		if level[section.ChangeKind] == "" {
			continue
		}
		for _, g := range section.groups {
			title := shown(g.strategy) + ": " + strings.ToLower(section.title())
			fmt.Fprintf(b, "::%s title=%s::%s, under %s\n", level[section.ChangeKind], annotated(title, true), annotated(shortLine(g.text), false),
				annotated(some(each(g.scenarios, shown), mostUnder), false))
		}
	}
	fmt.Fprintf(b, "::notice title=lockfault compare::%s\n", annotated(shortLine(d.Tally()), false))
}

func (c CostChange) times() string {
	if c.Ratio == 0 {
		return ""
	}
	text := fmt.Sprintf("%.2f", c.Ratio)
	if c.Within {
		text += ", within the spread"
	}
	return text
}

func (d *Diff) json(w io.Writer) error {
	e := json.NewEncoder(printable.NewJSONWriter(w))
	e.SetIndent("", "  ")
	return e.Encode(struct {
		Tool string `json:"tool"`
		*Diff
	}{Tool, d})
}

// page returns the differences in the form that a page needs.
func (d *Diff) page() *page.Differences {
	p := &page.Differences{Title: "lockfault compare", Tally: d.Tally() + ".", Old: shortLine(d.Old.text()), New: shortLine(d.New.text()), Notes: each(d.Notes, shortLine)}
	for _, section := range d.sections() {
		became := page.Became{Title: section.title(), Alarm: section.ChangeKind == Worse || section.ChangeKind == Lost}
		for _, g := range section.groups {
			became.Rows = append(became.Rows, [3]string{shown(g.strategy), g.text, strings.Join(each(g.scenarios, shown), ", ")})
		}
		p.Sections = append(p.Sections, became)
	}
	for _, c := range d.Costs {
		p.Costs = append(p.Costs, [5]string{shown(c.Strategy), shortLine(c.What), c.Old, c.New, c.times()})
	}
	return p
}
