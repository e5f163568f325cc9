package reports_test

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"errors"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/lockfault/lockfault/reports"
)

func someCosts() reports.Costs {
	cost := func(strategy string, contenders int, path string, rate float64, p50, p99 time.Duration, direct, hop float64) reports.Cost {
		return reports.Cost{
			Strategy: strategy, Contenders: contenders, Path: path, PairsPerSecond: rate, P50: p50, P99: p99, Pairs: int(2 * rate),
			Busiest: 1, OverDirect: direct, OverHop: hop,
		}
	}
	list := []reports.Cost{
		cost("set-nx-px-lua", 1, reports.PathDirect, 8123.4, 112*time.Microsecond, 310*time.Microsecond, 1, 0.5),
		cost("set-nx-px-lua", 1, reports.PathHop, 4061.7, 230*time.Microsecond, 700*time.Microsecond, 2, 1),
		cost("set-nx-px-lua", 1, reports.PathGate, 3481.4, 270*time.Microsecond, 1230*time.Microsecond, 2.333, 1.166),
		cost("set-nx-px-lua", 1, reports.PathRecorded, 812, time.Millisecond, 4*time.Millisecond, 10, 5),
		cost("redlock", 1, reports.PathDirect, 900, time.Millisecond, 2*time.Millisecond, 1, 0.5),
		cost("redlock", 1, reports.PathGate, 300, 3*time.Millisecond, 5*time.Millisecond, 3, 1.5),
		cost("set-nx-px-lua", 8, reports.PathDirect, 40, 151*time.Millisecond, 1300*time.Millisecond, 1, 1),
		cost("set-nx-px-lua", 8, reports.PathGate, 0, 0, 0, 0, 0),
	}
	list[6].Busiest, list[7].Failures = 0.333, 12
	return reports.Costs{
		Version: "v1", Server: "Redis 7.0.15", Platform: "go1.26 on linux/amd64, 2 processors", Time: 2 * time.Second, List: list,
	}
}

func TestCosts(t *testing.T) {
	var table, page, plot bytes.Buffer
	costs := someCosts()
	for _, err := range []error{costs.Table(&table), costs.Markdown(&page, "costs.svg"), costs.Plot(&plot)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	matches(t, "costs.txt", table.String())
	matches(t, "costs.md", page.String())
	matches(t, "costs.svg", plot.String())

	costs.Interrupted = true
	table.Reset()
	page.Reset()
	if err := errors.Join(costs.Table(&table), costs.Markdown(&page, "")); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(table.String(), "interrupted") || !strings.Contains(page.String(), "interrupted") || strings.Contains(page.String(), "![") {
		t.Errorf("an interrupted run, without a plot:\n%s\n%s", &table, &page)
	}
}

func TestCostsAsJSON(t *testing.T) {
	costs := someCosts()
	var b bytes.Buffer
	if err := costs.JSON(&b); err != nil {
		t.Fatal(err)
	}
	var got reports.Costs
	if err := json.Unmarshal(b.Bytes(), &got); err != nil {
		t.Fatal(err)
	}
	costs.Tool = reports.Tool
	if !reflect.DeepEqual(got, costs) {
		t.Errorf("got %+v, want %+v", got, costs)
	}
}

// TestCostPlotOfAnything checks that a plot of incomplete costs is well-formed, with finite
// numbers.
func TestCostPlotOfAnything(t *testing.T) {
	odd := someCosts()
	odd.List = odd.List[7:]
	odd.List[0].Strategy = `<&"`
	for _, costs := range []reports.Costs{{}, odd} {
		var b bytes.Buffer
		if err := costs.Plot(&b); err != nil {
			t.Fatal(err)
		}
		text := b.String()
		if strings.Contains(text, "NaN") || strings.Contains(text, "Inf") {
			t.Errorf("not a number:\n%s", text)
		}
		for d := xml.NewDecoder(&b); ; {
			if _, err := d.Token(); errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				t.Fatalf("%v:\n%s", err, text)
			}
		}
	}
}

// TestCostsInAReport checks that a report shows the costs from bench next to the round trips.
func TestCostsInAReport(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "costs.json")
	f, err := os.Create(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := someCosts().JSON(f); err != nil {
		t.Fatal(err)
	}
	f.Close()
	costs, err := reports.ReadCosts(file)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range costs {
		if c.Path != reports.PathDirect {
			t.Errorf("%+v is no cost of the lock alone", c)
		}
	}
	r, err := reports.Create(dir, reports.Head{Version: "v0.1.0", World: "sim", Seed: 7, Costs: costs}, reports.Plan{Cells: 2})
	if err != nil {
		t.Fatal(err)
	}
	for i, strategy := range []string{costs[0].Strategy, "unmeasured"} {
		add(t, r, i, cell(strategy, "flush", nil, nil))
	}
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	matches(t, "costs-in-report.md", read(t, dir, reports.MarkdownFile))

	for name, text := range map[string]string{"empty.json": "{}", "broken.json": "{", "other.json": `{"tool":"other","costs":[]}`} {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		if _, err := reports.ReadCosts(path); err == nil || !strings.Contains(err.Error(), "lockfault bench --format json") {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := reports.ReadCosts(filepath.Join(dir, "missing")); err == nil {
		t.Error("a file that isn't there was read")
	}
}
