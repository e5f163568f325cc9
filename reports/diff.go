package reports

import (
	"cmp"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/lockfault/lockfault/checker"
	"github.com/lockfault/lockfault/reports/diagram"
)

// A Diff holds the changes from one report to another, such as those of two versions of a library,
// two configurations or two designs.
type Diff struct {
	Old Side `json:"old"`
	New Side `json:"new"`
	// Notes lists the other differences between the two runs, which may have caused the changes.
	Notes []string `json:"notes"`
	// Changes holds the changed cells, the worst first. Same counts the unchanged cells.
	Changes []Change `json:"changes"`
	Same    int      `json:"same"`
	// Costs holds the costs that changed.
	Costs []CostChange `json:"costs"`

	played *aggregate // results of the new report
}

// A Side describes one of the two reports.
type Side struct {
	File    string `json:"file"`
	Version string `json:"version"`
	World   string `json:"world"`
	Cells   int    `json:"cells"`
}

// A ChangeKind is the kind of a cell's change.
type ChangeKind string

// The kinds of changes. A cell that shows a new anomaly is Worse, whichever anomalies it no longer
// shows. A cell that shows fewer anomalies, and in which an acquire failed that had succeeded while no
// client held, is Less: neither better nor worse. A cell that was decided and now is not is Lost: its change is unknown. Added also covers a
// cell that was undecided and now is decided.
const (
	Worse  ChangeKind = "worse"
	Lost   ChangeKind = "undecided"
	Better ChangeKind = "better"
	Less   ChangeKind = "less"
	Added  ChangeKind = "new"
	Gone   ChangeKind = "gone"
)

func becomes() []ChangeKind { return []ChangeKind{Worse, Lost, Less, Better, Added, Gone} }

// title returns the heading above the cells of a kind.
func (b ChangeKind) title() string {
	return map[ChangeKind]string{Worse: "Worse", Lost: "Without an answer now", Less: "Shows less, and grants less", Better: "Better", Added: "New", Gone: "Gone"}[b]
}

// A Change describes a changed cell, under its name in the new report.
type Change struct {
	Become   ChangeKind        `json:"become"`
	World    string            `json:"world"`
	Strategy string            `json:"strategy"`
	Scenario string            `json:"scenario"`
	Gained   []checker.Anomaly `json:"gained"` // anomalies that only the new cell shows
	Lost     []checker.Anomaly `json:"lost"`   // anomalies that only the old cell showed
	Text     string            `json:"says"`
}

// A CostChange describes a cost that changed. Old and New are text; each is a range if the cost
// varied between cells.
type CostChange struct {
	Strategy string  `json:"strategy"`
	What     string  `json:"what"`
	Old      string  `json:"old"`
	New      string  `json:"new"`
	Ratio    float64 `json:"ratio,omitempty"` // new by old, of midpoints for ranges; 0 if unknown
	// Within reports whether the measurements of both sides spread so widely over their time slices
	// that the cost may be unchanged.
	Within bool `json:"within_spread,omitempty"`
}

// Has reports whether any cell has a change of the kind.
func (d *Diff) Has(b ChangeKind) bool {
	return slices.ContainsFunc(d.Changes, func(c Change) bool { return c.Become == b })
}

// of returns the change of a cell. of returns the zero Change if the cell is unchanged or d is nil.
func (d *Diff) of(c Cell) Change {
	if d != nil {
		for _, change := range d.Changes {
			if change.World == c.World && change.Strategy == c.Strategy && change.Scenario == c.Scenario {
				return change
			}
		}
	}
	return Change{}
}

// alarm describes the change if it is [Worse] or [Lost], and returns "" otherwise.
func (c Change) alarm() string {
	if c.Become != Worse && c.Become != Lost {
		return ""
	}
	return "since the run before: " + strings.ToLower(c.Become.title()) + ": " + c.Text
}

// Tally returns the counts of the changed and unchanged cells as text.
func (d *Diff) Tally() string {
	var parts []string
	for _, b := range becomes() {
		n := 0
		for _, c := range d.Changes {
			if c.Become == b {
				n++
			}
		}
		if n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, b))
		}
	}
	return strings.Join(append(parts, fmt.Sprintf("%d the same", d.Same)), ", ")
}

// ResultsIn returns the results file that a path names: the path itself, or the file in that
// directory. If the path of a file is a symbolic link, the result is the link's target.
func ResultsIn(path string) string {
	info, err := os.Stat(path)
	if err == nil && info.IsDir() {
		return filepath.Join(path, ResultsFile)
	}
	if info, err := os.Lstat(path); err == nil && info.Mode()&fs.ModeSymlink != 0 {
		if to, err := filepath.EvalSymlinks(path); err == nil {
			return to
		}
	}
	return path
}

// Results holds the results of a report for a comparison. Results keeps a few bytes of each cell,
// and does not need the file after [ReadResults] has returned.
type Results struct {
	file string
	of   *aggregate
}

// ReadResults reads a results file. A file without cells is an error.
func ReadResults(file string) (*Results, error) {
	s, err := newSurvey(file)
	if err != nil {
		return nil, err
	}
	if len(s.cells) == 0 { // a comparison with an empty report would show no change
		return nil, fmt.Errorf("reports: read %s: it has no cells", file)
	}
	return &Results{file, s}, nil
}

// NewDiff compares two reports. The map renamed goes from old to new names of strategies; a name
// that its report lacks is an error. If renamed is empty and each report has a single strategy,
// these two are compared whatever their names are.
func NewDiff(old, new *Results, renamed map[string]string) (*Diff, error) {
	before, after := old.of, new.of
	if err := before.knows(renamed, after); err != nil {
		return nil, err
	}
	names := maps.Clone(renamed)
	if a, b := before.strategies.names, after.strategies.names; len(renamed) == 0 && len(a) == 1 && len(b) == 1 {
		names = map[string]string{a[0]: b[0]}
	}
	d := &Diff{played: after, Old: side(old.file, before), New: side(new.file, after), Notes: []string{}, Changes: []Change{}, Costs: []CostChange{}}
	d.note(before, after)
	met := map[[3]string]bool{}
	for _, was := range before.cells {
		name := cmp.Or(names[was.Strategy], was.Strategy)
		is, ok := after.cell(was.World, name, was.Scenario)
		if !ok {
			is.Verdict = NotApplicable
		}
		is.World, is.Strategy, is.Scenario = was.World, name, was.Scenario
		met[[3]string{was.World, name, was.Scenario}] = true
		d.cell(was, is)
	}
	for _, is := range after.cells {
		if !met[[3]string{is.World, is.Strategy, is.Scenario}] {
			d.cell(Cell{Verdict: NotApplicable}, is)
		}
	}
	slices.SortStableFunc(d.Changes, func(a, b Change) int {
		return slices.Index(becomes(), a.Become) - slices.Index(becomes(), b.Become)
	})
	for _, name := range before.strategies.names {
		d.costs(before, after, name, cmp.Or(names[name], name))
	}
	return d, nil
}

// Narrow removes the [Gone] cells whose strategy, scenario or world does not occur in the new
// report: that run was not meant to include them.
func (d *Diff) Narrow() {
	has := func(x index, name string) bool { return slices.Contains(x.names, name) }
	d.Changes = slices.DeleteFunc(d.Changes, func(c Change) bool {
		all := has(d.played.worlds, c.World) && has(d.played.strategies, c.Strategy) && has(d.played.scenarios, c.Scenario)
		return c.Become == Gone && !all
	})
}

// knows returns an error for the first renamed strategy that its report does not have.
func (s *aggregate) knows(renamed map[string]string, after *aggregate) error {
	for _, was := range slices.Sorted(maps.Keys(renamed)) {
		if !slices.Contains(s.strategies.names, was) {
			return fmt.Errorf("reports: %q is no strategy of the old report, which has %s", was, some(s.strategies.names, 12))
		}
		if is := renamed[was]; !slices.Contains(after.strategies.names, is) {
			return fmt.Errorf("reports: %q is no strategy of the new report, which has %s", is, some(after.strategies.names, 12))
		}
	}
	return nil
}

func side(file string, s *aggregate) Side {
	return Side{File: file, Version: s.run.Version, World: s.run.World, Cells: s.all.Tally().Cells}
}

// note records the differences in version, seed, lease and scripts, and interrupted runs.
func (d *Diff) note(before, after *aggregate) {
	lease := func(s *aggregate) string {
		if s.run.TTL == 0 {
			return "each script's own"
		}
		return s.run.TTL.String()
	}
	for _, trait := range []struct{ what, was, is string }{
		{"lockfault", before.run.Version, after.run.Version},
		{"seed", fmt.Sprint(before.run.Seed), fmt.Sprint(after.run.Seed)},
		{"lease", lease(before), lease(after)},
	} {
		if trait.was != trait.is {
			d.Notes = append(d.Notes, fmt.Sprintf("%s: %s, now %s", trait.what, trait.was, trait.is))
		}
	}
	scripts := map[string]string{}
	for _, script := range before.run.Scripts {
		scripts[script.Name] = script.Hash
	}
	var other []string
	for _, script := range after.run.Scripts {
		if hash, ok := scripts[script.Name]; ok && hash != script.Hash {
			other = append(other, script.Name)
		}
	}
	if len(other) > 0 {
		d.Notes = append(d.Notes, "scripts that are not what they were: "+some(other, 12))
	}
	for _, s := range []struct {
		which string
		of    *aggregate
	}{{"old", before}, {"new", after}} {
		if s.of.run.Interrupted {
			d.Notes = append(d.Notes, "the "+s.which+" run was interrupted: cells are missing")
		}
	}
}

// cell compares a cell of both reports. A not-applicable cell counts as missing.
func (d *Diff) cell(was, is Cell) {
	c := Change{World: is.World, Strategy: is.Strategy, Scenario: is.Scenario, Gained: []checker.Anomaly{}, Lost: []checker.Anomaly{}}
	there, here := was.Verdict != NotApplicable, is.Verdict != NotApplicable
	switch {
	case !there && !here:
		return
	case !there:
		c.Become, c.Text, c.Gained = Added, cellSays(is), is.Anomalies
	case !here:
		c.Become, c.Text, c.Lost = Gone, "it was: "+cellSays(was), was.Anomalies
		if !slices.Contains(d.played.strategies.names, c.Strategy) {
			c.Text = "nothing of it is in the new report"
		}
	case decided(was.Verdict) && decided(is.Verdict):
		// An anomaly that is chance in both reports is not a change, whether it is expected or not.
		lots := both(is.Drawn, was.Drawn)
		c.Gained, c.Lost = without(without(is.Anomalies, was.Anomalies), lots), without(without(was.Anomalies, is.Anomalies), lots)
		switch {
		case len(c.Gained) > 0:
			c.Become, c.Text = Worse, "shows "+names(c.Gained)
			if len(c.Lost) > 0 {
				c.Text += ", and no longer " + names(c.Lost)
			}
		case len(c.Lost) > 0:
			c.Become, c.Text = Better, "no longer "+names(c.Lost)
			if name := is.lacking(was.Acquires); name != "" {
				c.Become, c.Text = Less, c.Text+", but the acquire "+name+" failed, which succeeded before"
			}
		}
	case decided(was.Verdict):
		c.Become, c.Text, c.Lost = Lost, cellSays(is)+"; it was: "+cellSays(was), was.Anomalies
	case decided(is.Verdict):
		c.Become, c.Text, c.Gained = Added, cellSays(is)+"; it was "+string(was.Verdict), is.Anomalies
	}
	if c.Become == "" {
		d.Same++
		return
	}
	c.Text = shortLine(c.Text)
	d.Changes = append(d.Changes, c)
}

// costs compares the costs of a strategy, whose names in the old and the new report are was and is.
func (d *Diff) costs(before, after *aggregate, was, is string) {
	add := func(what, old, now string, ratio float64) {
		if old != now && old != "" && now != "" {
			d.Costs = append(d.Costs, CostChange{Strategy: is, What: what, Old: old, New: now, Ratio: ratio})
		}
	}
	world := before.first()
	for _, op := range []checker.Op{checker.Acquire, checker.Release, checker.Extend} {
		a, b := before.trips[costOf{world, was, op}], after.trips[costOf{world, is, op}]
		add("round trips, "+string(op), a.String(), b.String(), b.middle()/a.middle())
	}
	for _, scenario := range before.scenarios.names {
		a, _ := before.cell(world, was, scenario)
		b, _ := after.cell(world, is, scenario)
		for _, name := range slices.Sorted(maps.Keys(a.Measures)) {
			if now, ok := b.Measures[name]; ok {
				add(name+" under "+scenario, diagram.Words(a.Measures[name]), diagram.Words(now), ratioOf(now, a.Measures[name]))
			}
		}
		if decided(a.Verdict) && decided(b.Verdict) {
			add("overlap under "+scenario, durationText(a.Together), durationText(b.Together), ratioOf(b.Together, a.Together))
		}
	}
	for _, a := range before.run.Costs {
		for _, b := range after.run.Costs {
			if a.Strategy != was || b.Strategy != is || a.Contenders != b.Contenders {
				continue
			}
			for _, q := range []struct {
				name    string
				was, is quantile
			}{
				{"p50", quantile{a.P50, a.P50Least, a.P50Most}, quantile{b.P50, b.P50Least, b.P50Most}},
				{"p99", quantile{a.P99, a.P99Least, a.P99Most}, quantile{b.P99, b.P99Least, b.P99Most}},
			} {
				if q.was != q.is {
					d.Costs = append(d.Costs, CostChange{Strategy: is, What: q.name + ", " + count(a.Contenders, "contender"),
						Old: q.was.String(), New: q.is.String(), Ratio: ratioOf(q.is.of, q.was.of), Within: q.was.overlaps(q.is)})
				}
			}
		}
	}
}

// A quantile holds a quantile of all measured durations, and its smallest and largest value over
// the time slices of the measurement. The latter two are 0 if unknown.
type quantile struct{ of, least, most time.Duration }

// overlaps reports whether the ranges of both quantiles intersect.
func (q quantile) overlaps(other quantile) bool {
	return q.most > 0 && other.most > 0 && q.least <= other.most && other.least <= q.most
}

func (q quantile) String() string {
	if q.most == 0 {
		return diagram.Words(q.of)
	}
	return fmt.Sprintf("%s (%s to %s)", diagram.Words(q.of), diagram.Words(q.least), diagram.Words(q.most))
}

func durationText(d time.Duration) string {
	if d == 0 {
		return "none"
	}
	return diagram.Words(d)
}

// ratioOf returns now divided by was. ratioOf returns 0 if was is not positive.
func ratioOf(now, was time.Duration) float64 {
	if was <= 0 {
		return 0
	}
	return float64(now) / float64(was)
}

// A between is a range of counts, both ends included. The zero value is empty.
type between struct{ least, most int }

func (b between) and(n int) between {
	if b == (between{}) {
		return between{n, n}
	}
	return between{min(b.least, n), max(b.most, n)}
}

func (b between) middle() float64 { return float64(b.least+b.most) / 2 }

func (b between) String() string {
	switch {
	case b == (between{}):
		return ""
	case b.least == b.most:
		return fmt.Sprint(b.least)
	default:
		return fmt.Sprintf("%d to %d", b.least, b.most)
	}
}
