package reports_test

import (
	"slices"
	"testing"

	"github.com/lockfault/lockfault/checker"
	"github.com/lockfault/lockfault/reports"
)

func TestSettle(t *testing.T) {
	overlap, ghost := anomalies(checker.Overlap), anomalies(checker.Ghost)
	tests := []struct {
		name            string
		verdict         reports.Verdict
		found, expected []checker.Anomaly
		reason          string
		asExpected      bool
		difference      string
	}{
		{"held", reports.Held, nil, nil, "", true, ""},
		{"order does not matter", reports.Violated,
			anomalies(checker.Ghost, checker.Overlap), anomalies(checker.Overlap, checker.Ghost), "", true, ""},
		{"nothing came", reports.Held, nil, overlap, "", false, "missing: overlap"},
		{"too much came", reports.Violated, ghost, nil, "", false, "not expected: ghost"},
		{"another came", reports.Violated, ghost, overlap, "", false, "missing: overlap; not expected: ghost"},
		{"an error never passes", reports.Error, nil, nil, "boom\nstack", false, "error: boom"},
		{"nor does one with the right anomalies", reports.Error, ghost, ghost, "boom", false, "error: boom"},
		{"unknown never passes", reports.Unknown, nil, nil, "who knows", false, "unknown: who knows"},
		{"a verdict nobody knows never passes", "fine", nil, nil, "", false, ""},
		{"not applicable", reports.NotApplicable, nil, overlap, "", true, ""},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			c := reports.Cell{Verdict: test.verdict, Anomalies: test.found, Expected: test.expected, Reason: test.reason}
			c.Settle()
			if c.AsExpected != test.asExpected {
				t.Errorf("AsExpected = %v, want %v", c.AsExpected, test.asExpected)
			}
			if got := c.Difference(); got != test.difference {
				t.Errorf("Difference() = %q, want %q", got, test.difference)
			}
			if len(c.Better) > 0 || c.Improvement() != "" {
				t.Errorf("it is better: %v", c.Better)
			}
			if c.Anomalies == nil || c.Expected == nil || c.Witnesses == nil || c.RoundTrips == nil {
				t.Error("a list is nil, which JSON would show as null")
			}
			place := func(a checker.Anomaly) int { return slices.Index(checker.Anomalies(), a) }
			if !slices.IsSortedFunc(c.Anomalies, func(a, b checker.Anomaly) int { return place(a) - place(b) }) {
				t.Errorf("anomalies %v are not in order", c.Anomalies)
			}
		})
	}
}

// TestSettleAtMost checks that with AtMost a cell with fewer anomalies is better, and that other
// anomalies are still not expected.
func TestSettleAtMost(t *testing.T) {
	overlap, ghost := anomalies(checker.Overlap), anomalies(checker.Ghost)
	both := anomalies(checker.Ghost, checker.Overlap)
	for _, test := range []struct {
		name            string
		verdict         reports.Verdict
		found, expected []checker.Anomaly
		asExpected      bool
		difference      string
		improvement     string
	}{
		{"held", reports.Held, nil, nil, true, "", ""},
		{"just these", reports.Violated, both, both, true, "", ""},
		{"nothing came", reports.Held, nil, both, true, "", "better: no overlap, ghost"},
		{"one came", reports.Violated, ghost, both, true, "", "better: no overlap"},
		{"too much came", reports.Violated, both, overlap, false, "not expected: ghost", ""},
		{"another came", reports.Violated, ghost, overlap, false, "not expected: ghost", ""},
		{"one that may not be there", reports.Violated, ghost, nil, false, "not expected: ghost", ""},
		{"an error never passes", reports.Error, nil, both, false, "error: why", ""},
		{"unknown never passes", reports.Unknown, nil, both, false, "unknown: why", ""},
		{"not applicable", reports.NotApplicable, nil, both, true, "", ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			c := reports.Cell{
				Verdict: test.verdict, Anomalies: test.found, Expected: test.expected, AtMost: true, Reason: "why", Reference: &reports.ReferenceLock{},
				Better: anomalies(checker.Unavailable), // of an earlier call
			}
			c.Settle()
			if c.AsExpected != test.asExpected || c.Difference() != test.difference || c.Improvement() != test.improvement {
				t.Errorf("AsExpected = %v, Difference() = %q, Improvement() = %q, want %v, %q, %q",
					c.AsExpected, c.Difference(), c.Improvement(), test.asExpected, test.difference, test.improvement)
			}
			if (len(c.Better) > 0) != (test.improvement != "") {
				t.Errorf("Better = %v", c.Better)
			}
		})
	}
}
