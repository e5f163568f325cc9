package reports_test

import (
	"cmp"
	"strings"
	"testing"

	"github.com/lockfault/lockfault/checker"
	"github.com/lockfault/lockfault/reports"
)

// byChance returns a cell whose anomalies depend on chance.
func byChance(found ...checker.Anomaly) reports.Cell {
	c := cell("redlock", "late", found, anomalies(checker.Overlap, checker.StaleWrite))
	c.AtMost, c.Drawn, c.Chance = true, c.Expected, "it draws lots"
	c.Settle()
	return c
}

// TestChance checks cells whose anomalies depend on chance: fewer anomalies are not better, and
// unexpected ones are still not expected.
func TestChance(t *testing.T) {
	const says = "by chance: at most overlap, stale-write, since it draws lots"
	for _, test := range []struct {
		name       string
		cell       reports.Cell
		asExpected bool
		says, mark string
		tally      string
	}{
		{"nothing", byChance(), true, says, "· ±", "1 cell: 1 held; all as expected, 1 by chance"},
		{"some", byChance(checker.Overlap), true, says, "overlap ±", "1 cell: 1 violated; all as expected, 1 by chance"},
		{"all", byChance(checker.Overlap, checker.StaleWrite), true, says, "overlap, stale-write ±", "1 cell: 1 violated; all as expected, 1 by chance"},
		{"nothing may be", func() reports.Cell { // set by a file
			c := byChance()
			c.Expected = nil
			c.Settle()
			return c
		}(), true, "", "·", "1 cell: 1 held; all as expected"},
		{"less may be", func() reports.Cell { // set by a file
			c := byChance()
			c.Expected = anomalies(checker.Overlap)
			c.Settle()
			return c
		}(), true, "by chance: at most overlap, since it draws lots", "· ±", "1 cell: 1 held; all as expected, 1 by chance"},
		{"another", byChance(checker.Ghost), false, "", "ghost *", "1 cell: 1 violated; 1 not as expected"},
	} {
		t.Run(test.name, func(t *testing.T) {
			c := test.cell
			if c.AsExpected != test.asExpected || c.ByChance() != test.says || len(c.Better) > 0 || c.Improvement() != "" {
				t.Errorf("as expected: %v, %q, better: %v", c.AsExpected, c.ByChance(), c.Better)
			}
			m := matrix(t, []reports.Cell{c})
			if got := m.Tally().String(); got != test.tally {
				t.Errorf("tally %q, want %q", got, test.tally)
			}
			shown := table(t, m)
			if !strings.Contains(shown, test.mark+"\n") || strings.Contains(shown, "± by chance, another time more or less") != (test.says != "") {
				t.Errorf("want %q in\n%s", test.mark, shown)
			}
			dir := write(t, []reports.Cell{c}, []int{0})
			for _, file := range []string{reports.MarkdownFile, reports.HTMLFile} {
				if got := strings.Contains(read(t, dir, file), cmp.Or(test.says, says)); got != (test.says != "") {
					t.Errorf("%s says so: %v", file, got)
				}
			}
		})
	}
}

// TestAdviceOfChance checks that a lock that survives the loss of a node by chance is not
// recommended for it.
func TestAdviceOfChance(t *testing.T) {
	c := byChance()
	c.Scenario = "node-down"
	text := read(t, write(t, []reports.Cell{c}, []int{0}), reports.HTMLFile)
	for says, want := range map[string]bool{
		"available ±": true,
		"In 1 scenario what it shows is chance (±), and may be more another time.": true,
		"Bears a node that is down": false,
	} {
		if got := strings.Contains(text, says); got != want {
			t.Errorf("%q is there: %v", says, got)
		}
	}
}

// TestDiffOfChance checks that another outcome of chance is no change, but that a change of what
// depends on chance is a change.
func TestDiffOfChance(t *testing.T) {
	surely := atMost(cell("redlock", "late", anomalies(checker.Overlap), anomalies(checker.Overlap, checker.StaleWrite)))
	for _, test := range []struct {
		name     string
		was, is  reports.Cell
		becoming reports.ChangeKind // empty: no change
	}{
		{"less", byChance(checker.Overlap), byChance(), ""},
		{"more", byChance(), byChance(checker.Overlap, checker.StaleWrite), ""},
		{"another", byChance(), byChance(checker.Ghost), reports.Worse},
		{"less, beside what isn't expected", byChance(checker.Overlap, checker.Ghost), byChance(checker.Ghost), ""},
		{"no longer what isn't expected", byChance(checker.Ghost), byChance(checker.Overlap), reports.Better},
		{"where a file allows less", byChance(), func() reports.Cell {
			c := byChance(checker.Overlap)
			c.Expected = nil
			c.Settle()
			return c
		}(), ""},
		{"no longer by chance", byChance(), surely, reports.Worse},
	} {
		t.Run(test.name, func(t *testing.T) {
			d := diff(t, write(t, []reports.Cell{test.was}, []int{0}), write(t, []reports.Cell{test.is}, []int{0}), nil)
			if got := len(d.Changes) == 0; got != (test.becoming == "") || !got && d.Changes[0].Become != test.becoming {
				t.Errorf("%+v, want %q", d.Changes, test.becoming)
			}
		})
	}
}
