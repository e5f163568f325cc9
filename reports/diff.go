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

// A Diff is what changed from one report to another: two versions of a library, two
// configurations, two designs.
type Diff struct {
	Old Side `json:"old"`
	New Side `json:"new"`
	// Notes say what else the two differ in, which may be why.
	Notes []string `json:"notes"`
	// Changes are the cells that changed, the worst first, and Same is how many did not.
	Changes []Change `json:"changes"`
	Same    int      `json:"same"`
	// Costs are the costs that changed.
	Costs []CostChange `json:"costs"`

	played *aggregate // the new report
}

// A Side is one of the two reports.
type Side struct {
	File    string `json:"file"`
	Version string `json:"version"`
	World   string `json:"world"`
	Cells   int    `json:"cells"`
}

// A ChangeKind is what became of a cell.
type ChangeKind string

// What becomes of cells. A cell that shows an anomaly that it did not show is worse, whatever it
// has ceased to show; one that has no answer any more is lost, and nobody knows.
const (
	Worse  ChangeKind = "worse"
	Lost   ChangeKind = "undecided"
	Better ChangeKind = "better"
	Added  ChangeKind = "new"
	Gone   ChangeKind = "gone"
)

func becomes() []ChangeKind { return []ChangeKind{Worse, Lost, Better, Added, Gone} }

// title returns what heads the cells of a kind.
func (b ChangeKind) title() string {
	return map[ChangeKind]string{Worse: "Worse", Lost: "Without an answer now", Better: "Better", Added: "New", Gone: "Gone"}[b]
}

// A Change is a cell that changed, by its name in the new report.
type Change struct {
	Become   ChangeKind        `json:"become"`
	World    string            `json:"world"`
	Strategy string            `json:"strategy"`
	Scenario string            `json:"scenario"`
	Gained   []checker.Anomaly `json:"gained"` // the anomalies that it did not show before
	Lost     []checker.Anomaly `json:"lost"`   // those that it does not show any more
	Text     string            `json:"says"`
}

// A CostChange is a cost that changed. Old and New are in words: a range where it was not the
// same everywhere.
type CostChange struct {
	Strategy string  `json:"strategy"`
	What     string  `json:"what"`
	Old      string  `json:"old"`
	New      string  `json:"new"`
	Ratio    float64 `json:"ratio,omitempty"` // of the new to the old, of ranges that of their middles; 0 if there is none
	// Within says that what was measured spreads so far in the slices of both that it may be the
	// same.
	Within bool `json:"within_spread,omitempty"`
}

// Has reports whether any cell became that.
func (d *Diff) Has(b ChangeKind) bool {
	return slices.ContainsFunc(d.Changes, func(c Change) bool { return c.Become == b })
}

// of returns what a cell became, the zero Change if nothing else or if nothing was compared: d may
// be nil.
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

// alarm says what became of a cell, if that is nothing to be passed over.
func (c Change) alarm() string {
	if c.Become != Worse && c.Become != Lost {
		return ""
	}
	return "since the run before: " + strings.ToLower(c.Become.title()) + ": " + c.Text
}

// Tally counts the cells in a sentence.
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

// ResultsIn returns the results file that a path names: the path, or the file in that
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

// Results are those of a report, to be compared with others. They keep a few bytes of each cell,
// and need their file no longer.
type Results struct {
	file string
	of   *aggregate
}

// ReadResults reads the results of a file.
func ReadResults(file string) (*Results, error) {
	s, err := newSurvey(file)
	if err != nil {
		return nil, err
	}
	if len(s.cells) == 0 { // to be the same as nothing is nothing to be glad of
		return nil, fmt.Errorf("reports: read %s: it has no cells", file)
	}
	return &Results{file, s}, nil
}

// NewDiff compares two reports. renamed has the new names of strategies by their old ones. Where
// each report is of a single strategy the two are compared, whatever their names are.
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

// Narrow leaves out what is gone because the new report has nothing of that strategy, scenario
// or world: it was not to be played.
func (d *Diff) Narrow() {
	has := func(x index, name string) bool { return slices.Contains(x.names, name) }
	d.Changes = slices.DeleteFunc(d.Changes, func(c Change) bool {
		all := has(d.played.worlds, c.World) && has(d.played.strategies, c.Strategy) && has(d.played.scenarios, c.Scenario)
		return c.Become == Gone && !all
	})
}

// knows returns an error for names that neither report has.
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

// note says what was not the same for both.
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

// cell takes a cell of both reports. What does not apply counts as not there.
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
		// What is chance in both is no change, whatever is expected.
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

// cellSays tells what a cell showed.
func cellSays(c Cell) string {
	switch {
	case !c.Decided():
		return c.Difference()
	case len(c.Anomalies) == 0:
		return string(Held)
	default:
		return names(c.Anomalies)
	}
}

// costs compares what a strategy costs, which is called otherwise in the new report.
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
			add("overlap under "+scenario, words(a.Together), words(b.Together), ratioOf(b.Together, a.Together))
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

// A quantile is one of how long something took, of all that was measured, and the least and the
// most in a slice of that, if they are known.
type quantile struct{ of, least, most time.Duration }

// overlaps reports whether the slices of both have something in common.
func (q quantile) overlaps(other quantile) bool {
	return q.most > 0 && other.most > 0 && q.least <= other.most && other.least <= q.most
}

func (q quantile) String() string {
	if q.most == 0 {
		return diagram.Words(q.of)
	}
	return fmt.Sprintf("%s (%s to %s)", diagram.Words(q.of), diagram.Words(q.least), diagram.Words(q.most))
}

func words(d time.Duration) string {
	if d == 0 {
		return "none"
	}
	return diagram.Words(d)
}

// ratioOf returns by how much the one is longer; 0 where that can't be said.
func ratioOf(now, was time.Duration) float64 {
	if was <= 0 {
		return 0
	}
	return float64(now) / float64(was)
}

// A costOf says what a span is of.
type costOf struct {
	world, strategy string
	op              checker.Op
}

// A between is from the least to the most of what was counted. The zero value is of nothing.
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
