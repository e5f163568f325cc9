package reports_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/lockfault/lockfault/reports"
)

func head() reports.Head { return reports.Head{Version: "v0.1.0", World: "sim", Seed: 7} }

// write writes a report of the cells, added in the given order of places, and returns its
// directory.
func write(t *testing.T, cells []reports.Cell, order []int) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "new", "report")
	r, err := reports.Create(dir, head(), reports.Plan{Cells: len(cells)})
	if err != nil {
		t.Fatal(err)
	}
	for _, place := range order {
		add(t, r, place, cells[place])
	}
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	return dir
}

// add adds a cell with its history.
func add(t *testing.T, r *reports.Report, place int, c reports.Cell) {
	t.Helper()
	if c.History != "" {
		h := race()
		h.Meta.World, h.Meta.Strategy, h.Meta.Scenario = c.World, c.Strategy, c.Scenario
		if err := reports.WriteHistory(r.Dir(), c.History, h); err != nil {
			t.Fatal(err)
		}
	}
	if err := r.Add(place, c); err != nil {
		t.Fatal(err)
	}
}

func read(t *testing.T, parts ...string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(parts...))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestReportIsTheSameInAnyOrder(t *testing.T) {
	cells := sample()
	dir := write(t, cells, []int{0, 1, 2, 3, 4, 5, 6, 7})
	other := write(t, cells, []int{7, 3, 0, 1, 6, 5, 2, 4})
	for _, name := range []string{reports.ResultsFile, reports.MarkdownFile, reports.HTMLFile} {
		matches(t, name, read(t, dir, name))
		if read(t, dir, name) != read(t, other, name) {
			t.Errorf("%s depends on the order in which cells finish", name)
		}
	}
	var got []reports.Cell
	h, err := reports.Scan(filepath.Join(dir, reports.ResultsFile), func(c reports.Cell) error {
		got = append(got, c)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	want := head()
	want.Tool = reports.Tool
	if !reflect.DeepEqual(h, want) {
		t.Errorf("head %+v, want %+v", h, want)
	}
	if !reflect.DeepEqual(got, cells) {
		t.Errorf("read back\n%+v\nwant\n%+v", got, cells)
	}
	// Only the report is left.
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	if !slices.Equal(names, []string{"histories", "index.html", "report.md", "results.json"}) {
		t.Errorf("the directory holds %v", names)
	}
}

// TestContract checks the names in results.json. They must not change, since other programs read
// the file.
func TestContract(t *testing.T) {
	var results struct {
		Cells []map[string]json.RawMessage
	}
	text := read(t, "testdata", reports.ResultsFile)
	if err := json.Unmarshal([]byte(text), &results); err != nil {
		t.Fatal(err)
	}
	var top map[string]json.RawMessage
	if err := json.Unmarshal([]byte(text), &top); err != nil {
		t.Fatal(err)
	}
	if got, want := slices.Sorted(maps.Keys(top)), []string{"cells", "seed", "tool", "version", "world"}; !slices.Equal(got, want) {
		t.Errorf("top-level names %v, want %v", got, want)
	}
	got := slices.Sorted(maps.Keys(results.Cells[0]))
	want := []string{"anomalies", "as_expected", "elapsed_ns", "expected", "history", "linearizable",
		"round_trips", "scenario", "strategy", "verdict", "virtual_ns", "witnesses", "world"}
	if !slices.Equal(got, want) {
		t.Errorf("names of a cell %v, want %v", got, want)
	}
}

func TestInterrupted(t *testing.T) {
	dir := write(t, sample(), []int{2, 5})
	cells := 0
	h, err := reports.Scan(filepath.Join(dir, reports.ResultsFile), func(reports.Cell) error { cells++; return nil })
	if err != nil || !h.Interrupted || cells != 2 {
		t.Errorf("head %+v, %d cells, error %v, want it interrupted with 2 cells", h, cells, err)
	}
	if !strings.Contains(read(t, dir, reports.ResultsFile), `"interrupted":true`) {
		t.Error(`results.json does not say "interrupted":true`)
	}
	if !strings.Contains(read(t, dir, reports.MarkdownFile), "interrupted") {
		t.Error("report.md does not say that the run was interrupted")
	}
}

func TestNoCells(t *testing.T) {
	dir := write(t, sample(), nil)
	var results struct{ Cells []reports.Cell }
	if err := json.Unmarshal([]byte(read(t, dir, reports.ResultsFile)), &results); err != nil || results.Cells == nil {
		t.Errorf("results without cells: %+v, error %v, want an empty list", results, err)
	}
}

func TestCreateSaysBeforehandWhatCantBeWritten(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{file, filepath.Join(file, "below")} {
		if _, err := reports.Create(dir, head(), reports.Plan{}); err == nil || !strings.Contains(err.Error(), dir) {
			t.Errorf("Create(%s): error %v, want one that names it", dir, err)
		}
	}
}

// TestMemoryDoesNotGrowWithCells checks that a run may have any number of cells with stack traces.
func TestMemoryDoesNotGrowWithCells(t *testing.T) {
	const cells = 1000
	r, err := reports.Create(t.TempDir(), head(), reports.Plan{Cells: cells})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Leave()
	c := cell("set-nx-px", "flush", nil, nil)
	c.Verdict, c.Reason = reports.Error, strings.Repeat("a long stack\n", 300)
	heap := func() uint64 {
		runtime.GC()
		var stats runtime.MemStats
		runtime.ReadMemStats(&stats)
		return stats.HeapAlloc
	}
	before := heap()
	for place := range cells {
		if err := r.Add(place, c); err != nil {
			t.Fatal(err)
		}
	}
	// A report keeps the positions of cells in memory, but not their contents.
	if after := heap(); after > before && (after-before)/cells > 100 {
		t.Errorf("%d cells of %d bytes left %d bytes behind", cells, len(c.Reason), after-before)
	}
}

func TestScanRefuses(t *testing.T) {
	for _, text := range []string{
		``, `[]`, `{`, `{"tool":"lockfault"`, `{"tool":"other","cells":[]}`, `{"cells":[]}`,
		`{"tool":"lockfault","cells":{}}`, `{"tool":"lockfault","cells":[1]}`, `{"tool":"lockfault","seed":-1}`,
	} {
		file := filepath.Join(t.TempDir(), "results.json")
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		if _, err := reports.Scan(file, func(reports.Cell) error { return nil }); err == nil || !strings.Contains(err.Error(), file) {
			t.Errorf("%q: error %v, want one that names the file", text, err)
		}
	}
}

func TestScanEndsWithTheVisitorsError(t *testing.T) {
	dir := write(t, sample(), []int{0, 1, 2})
	enough := errors.New("enough")
	calls := 0
	_, err := reports.Scan(filepath.Join(dir, reports.ResultsFile), func(reports.Cell) error { calls++; return enough })
	if !errors.Is(err, enough) || calls != 1 {
		t.Errorf("error %v after %d calls, want %v after one", err, calls, enough)
	}
}

func FuzzScan(f *testing.F) {
	text, err := os.ReadFile(filepath.Join("testdata", reports.ResultsFile))
	if err == nil {
		f.Add(text)
	}
	f.Add([]byte(`{"tool":"lockfault","cells":[{}],"seed":1}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		file := filepath.Join(t.TempDir(), "results.json")
		if err := os.WriteFile(file, text, 0o644); err != nil {
			t.Fatal(err)
		}
		var b bytes.Buffer
		var m reports.Matrix
		if _, err := reports.Scan(file, m.Add); err != nil {
			return
		}
		if err := m.Table(&b); err != nil {
			t.Error(err)
		}
		if err := reports.Markdown(&b, reports.Source{Results: file}); err != nil {
			t.Error(err)
		}
	})
}

// TestNoRunWritesThat checks that results that no run can have written are refused with a one-line
// error.
func TestNoRunWritesThat(t *testing.T) {
	const cell = `{"world":"sim","strategy":"s","scenario":"c","verdict":"held","anomalies":[]}`
	for name, test := range map[string][2]string{
		"nothing of it":     {`{"tool":"lockfault"}`, "it has no cells"},
		"other letters":     {`{"tool":"lockfault","Cells":[]}`, "it has no cells"},
		"more behind":       {`{"tool":"lockfault","cells":[]} {}`, "something behind its end"},
		"cells twice":       {`{"tool":"lockfault","cells":[],"cells":[]}`, `"cells" twice`},
		"a key twice":       {`{"tool":"lockfault","seed":1,"seed":2,"cells":[]}`, `"seed" twice`},
		"another verdict":   {`{"tool":"lockfault","cells":[` + strings.Replace(cell, "held", "fine", 1) + `]}`, `the verdict "fine"`},
		"no verdict":        {`{"tool":"lockfault","cells":[` + strings.Replace(cell, `"verdict":"held",`, "", 1) + `]}`, `the verdict ""`},
		"held, with some":   {`{"tool":"lockfault","cells":[` + strings.Replace(cell, "[]", `["overlap"]`, 1) + `]}`, "held, and has anomalies"},
		"violated, by none": {`{"tool":"lockfault","cells":[` + strings.Replace(cell, "held", "violated", 1) + `]}`, "has no anomaly"},
		"no name":           {`{"tool":"lockfault","cells":[` + strings.Replace(cell, `"strategy":"s",`, "", 1) + `]}`, "lacks a name"},
		"a cell twice":      {`{"tool":"lockfault","cells":[` + cell + "," + cell + `]}`, `the cell "s" under "c" in "sim" is there twice`},
	} {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), reports.ResultsFile)
			if err := os.WriteFile(file, []byte(test[0]), 0o644); err != nil {
				t.Fatal(err)
			}
			if _, err := reports.ReadResults(file); err == nil || !strings.Contains(err.Error(), test[1]) || strings.Contains(err.Error(), "\n") {
				t.Errorf("got %v, want one line with %s", err, test[1])
			}
		})
	}
}
