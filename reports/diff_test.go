package reports_test

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/lockfault/lockfault/checker"
	"github.com/lockfault/lockfault/reports"
)

// later returns the sample as in another version: with cells that got worse, better, undecided,
// decided, new and gone, and with higher costs.
func later() []reports.Cell {
	list := sample()
	list[0] = cell("set-nx|px", "gc-pause", anomalies(checker.StaleWrite), nil)                  // better
	list[1] = cell("redlock", "gc-pause", anomalies(checker.Overlap, checker.SelfDeadlock), nil) // worse, though it lost one
	list[2].Verdict, list[2].Reason = reports.Error, "panic: <b>\x1b[31m|no|"                    // undecided
	list[3].Scenario = "con|tention"                                                             // gone, and new
	list[5].Measures = map[string]time.Duration{"recovery": 45 * time.Second}                    // a cost
	list[5].RoundTrips = map[checker.Op]int{checker.Acquire: 7}                                  // another
	list[7] = cell("redlock", "flush", anomalies(checker.LostLock), nil)                         // decided
	for i := range list {
		list[i].Settle()
	}
	return list
}

// order returns the numbers from 0 to n-1.
func order(n int) (list []int) {
	for i := range n {
		list = append(list, i)
	}
	return list
}

func TestDiffIsTold(t *testing.T) {
	before, after := write(t, sample(), order(len(sample()))), write(t, later(), order(len(later())))
	d := diff(t, before, after, nil)
	for _, format := range reports.DiffFormats() {
		var b strings.Builder
		if err := d.Write(&b, format); err != nil {
			t.Fatal(err)
		}
		text := strings.NewReplacer(before, "before", after, "after").Replace(b.String())
		matches(t, "diff."+format, text)
		if strings.Contains(text, "\x1b") || format == "html" && strings.Contains(text, "<b>") {
			t.Errorf("%s lets through what a cell says:\n%s", format, text)
		}
	}
}

// TestFormsSince checks that every suitable format of a report contains the changes since an
// earlier run.
func TestFormsSince(t *testing.T) {
	before, after := write(t, sample(), order(len(sample()))), write(t, later(), order(len(later())))
	of := reports.Source{Results: filepath.Join(after, reports.ResultsFile), Since: diff(t, before, after, nil)}
	for _, f := range reports.Forms() {
		var b strings.Builder
		if err := f.Write(&b, of); err != nil {
			t.Fatal(err)
		}
		text := strings.NewReplacer(before, "before", after, "after").Replace(b.String())
		switch f.Name {
		case "markdown", "junit", "github":
			matches(t, "since."+f.Name, text)
		case "html":
			for _, want := range []string{`<a href="#since">`, "<td>shows self-deadlock, and no longer ghost</td>", "1 worse, 1 undecided"} {
				if !strings.Contains(text, want) {
					t.Errorf("the page has no %s", want)
				}
			}
		}
	}
}

// TestDiffOfMeasuredCosts checks that a change of a cost measured in slices states whether it is
// within the spread.
func TestDiffOfMeasuredCosts(t *testing.T) {
	results := func(p50, least, most time.Duration) *reports.Results {
		h := head()
		h.Costs = []reports.Cost{{Strategy: "redlock", Contenders: 8, Path: reports.PathDirect, P50: p50, P50Least: least, P50Most: most, P99: time.Second}}
		dir := t.TempDir()
		r, err := reports.Create(dir, h, reports.Plan{Cells: 1})
		if err != nil {
			t.Fatal(err)
		}
		add(t, r, 0, cell("redlock", "flush", nil, nil))
		if err := r.Close(); err != nil {
			t.Fatal(err)
		}
		return readResults(t, dir)
	}
	const ms = time.Millisecond
	for _, test := range []struct {
		name     string
		old, new *reports.Results
		want     []reports.CostChange
	}{
		{"beyond", results(10*ms, 9*ms, 11*ms), results(20*ms, 12*ms, 25*ms), []reports.CostChange{
			{Strategy: "redlock", What: "p50, 8 contenders", Old: "10 ms (9 ms to 11 ms)", New: "20 ms (12 ms to 25 ms)", Ratio: 2}}},
		{"within", results(10*ms, 9*ms, 12*ms), results(20*ms, 12*ms, 25*ms), []reports.CostChange{
			{Strategy: "redlock", What: "p50, 8 contenders", Old: "10 ms (9 ms to 12 ms)", New: "20 ms (12 ms to 25 ms)", Ratio: 2, Within: true}}},
		{"from before slices were kept", results(10*ms, 0, 0), results(20*ms, 12*ms, 25*ms), []reports.CostChange{
			{Strategy: "redlock", What: "p50, 8 contenders", Old: "10 ms", New: "20 ms (12 ms to 25 ms)", Ratio: 2}}},
		{"the same", results(10*ms, 9*ms, 12*ms), results(10*ms, 9*ms, 12*ms), []reports.CostChange{}},
	} {
		d, err := reports.NewDiff(test.old, test.new, nil)
		if err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(d.Costs, test.want) {
			t.Errorf("%s: %+v, want %+v", test.name, d.Costs, test.want)
		}
	}
}

func diff(t *testing.T, before, after string, renamed map[string]string) *reports.Diff {
	t.Helper()
	d, err := reports.NewDiff(readResults(t, before), readResults(t, after), renamed)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func readResults(t *testing.T, dir string) *reports.Results {
	t.Helper()
	r, err := reports.ReadResults(reports.ResultsIn(dir))
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// TestDiffBothWays checks that the reverse comparison has the reverse changes.
func TestDiffBothWays(t *testing.T) {
	before, after := write(t, sample(), order(len(sample()))), write(t, later(), order(len(later())))
	there, back := diff(t, before, after, nil), diff(t, after, before, nil)
	if there.Same != back.Same {
		t.Errorf("%d cells are the same, and %d the other way round", there.Same, back.Same)
	}
	cells := func(d *reports.Diff, list ...reports.ChangeKind) (names []string) {
		for _, c := range d.Changes {
			if slices.Contains(list, c.Become) {
				names = append(names, c.Strategy+"/"+c.Scenario)
			}
		}
		slices.Sort(names)
		return names
	}
	if a, b := cells(there, reports.Added, reports.Lost, reports.Gone), cells(back, reports.Added, reports.Lost, reports.Gone); !slices.Equal(a, b) {
		t.Errorf("there %v, back %v", a, b)
	}
	for _, name := range cells(there, reports.Better) {
		if !slices.Contains(cells(back, reports.Worse), name) {
			t.Errorf("%s is better, but not worse the other way round", name)
		}
	}
	self := diff(t, before, before, nil)
	if len(self.Changes)+len(self.Costs)+len(self.Notes) > 0 {
		t.Errorf("a report differs from itself: %+v", self)
	}
}

// TestDiffOfOtherNames checks that strategies with different names are compared if each is alone in
// its report or if the user names them.
func TestDiffOfOtherNames(t *testing.T) {
	one := write(t, []reports.Cell{cell("v1", "flush", nil, nil)}, []int{0})
	two := write(t, []reports.Cell{cell("v2", "flush", anomalies(checker.LostLock), nil)}, []int{0})
	both := write(t, []reports.Cell{cell("v2", "flush", nil, nil), cell("v3", "flush", anomalies(checker.Ghost), nil)}, []int{0, 1})
	for _, test := range []struct {
		name          string
		before, after string
		renamed       map[string]string
		want          string
	}{
		{"alone", one, two, nil, "1 worse, 0 the same"},
		{"not alone", one, both, nil, "2 new, 1 gone, 0 the same"},
		{"named", one, both, map[string]string{"v1": "v3"}, "1 worse, 1 new, 0 the same"},
	} {
		t.Run(test.name, func(t *testing.T) {
			if got := diff(t, test.before, test.after, test.renamed).Tally(); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
	for _, renamed := range []map[string]string{{"v1": "v9"}, {"v9": "v2"}} {
		if _, err := reports.NewDiff(readResults(t, one), readResults(t, two), renamed); err == nil || !strings.Contains(err.Error(), `"v9" is no strategy`) {
			t.Errorf("%v: %v", renamed, err)
		}
	}
}

// TestNarrowedDiff checks that the comparison of a smaller run with its baseline omits the cells
// that it did not include.
func TestNarrowedDiff(t *testing.T) {
	before, after := write(t, sample(), order(len(sample()))), write(t, sample()[:1], []int{0})
	d := diff(t, before, after, nil)
	if !d.Has(reports.Gone) {
		t.Error("nothing is gone")
	}
	if d.Narrow(); len(d.Changes) > 0 || d.Same != 1 {
		t.Errorf("got %+v", d)
	}
	if filepath.Base(d.New.File) != reports.ResultsFile {
		t.Errorf("the new report is %s", d.New.File)
	}
}
