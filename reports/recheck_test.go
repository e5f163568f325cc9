package reports_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/lockfault/lockfault/checker"
	"github.com/lockfault/lockfault/internal/leases"
	"github.com/lockfault/lockfault/reports"
)

// derived returns a cell of the history that race returns, as the checker judges it.
func derived() reports.Cell {
	h := race()
	h.Meta.World, h.Meta.Strategy, h.Meta.Scenario = "sim", "redlock", "gc-pause"
	v := checker.Check(h)
	c := cell("redlock", "gc-pause", v.Anomalies(), v.Anomalies())
	c.Derive(v, h, leases.Lock{})
	c.Settle()
	return c
}

func TestRecheck(t *testing.T) {
	for _, test := range []struct {
		name   string
		change func(*reports.Cell)
		want   string // "" if the cell agrees with its history
	}{
		{"as it is", func(*reports.Cell) {}, ""},
		{"verdict", func(c *reports.Cell) { c.Verdict, c.Anomalies = reports.Held, nil }, "it says held, and its history is violated"},
		{"anomalies", func(c *reports.Cell) { c.Anomalies = append(c.Anomalies, checker.Ghost) }, "and its history shows"},
		{"proofs", func(c *reports.Cell) { c.Witnesses[0].Events = []int{1, 2} }, "its proofs are not those"},
		{"unjudged", func(c *reports.Cell) { c.Unjudged = &checker.Ambiguity{Message: "why"} }, "what was not judged"},
		{"order", func(c *reports.Cell) { c.Linearizable = !c.Linearizable }, "whether there is a legal order"},
		{"together", func(c *reports.Cell) { c.Together += time.Second }, "two believed at once"},
		{"lease", func(c *reports.Cell) { c.Lease++ }, "the lease was"},
		{"another's history", func(c *reports.Cell) { c.Scenario = "flush" }, "its history is that of redlock under gc-pause"},
		{"nodes", func(c *reports.Cell) { c.Nodes++ }, "its nodes"},
		{"expectation", func(c *reports.Cell) { c.AsExpected = false }, "as_expected is false"},
		{"no history", func(c *reports.Cell) { c.History = "" }, "it has no history"},
	} {
		t.Run(test.name, func(t *testing.T) {
			c := derived()
			dir := write(t, []reports.Cell{c}, []int{0})
			test.change(&c)
			rewrite(t, dir, c)
			r, err := reports.RecheckDir(t.Context(), dir)
			if err != nil {
				t.Fatal(err)
			}
			switch {
			case test.want == "" && (r.Cells != 1 || len(r.Differing) > 0):
				t.Errorf("got %+v", r)
			case test.want != "" && (len(r.Differing) != 1 || !strings.Contains(r.Differing[0], test.want)):
				t.Errorf("got %+v, want one with %q", r, test.want)
			}
		})
	}
}

// rewrite replaces the cells of a report by one cell.
func rewrite(t *testing.T, dir string, c reports.Cell) {
	t.Helper()
	text, err := json.Marshal(struct {
		reports.Head
		Cells []reports.Cell `json:"cells"`
	}{reports.Head{Tool: reports.Tool, World: "sim"}, []reports.Cell{c}})
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, reports.ResultsFile), text, 0o644)
	}
	if err != nil {
		t.Fatal(err)
	}
}
