package cells

import (
	"testing"
	"time"

	"github.com/lockfault/lockfault/internal/worlds"
	"github.com/lockfault/lockfault/reports"
)

// A late cell's lease grows in whole leases of the first, until it bears what was
// late, and not without end.
func TestAgain(t *testing.T) {
	const ms = time.Millisecond
	for _, c := range []struct {
		name             string
		was, late, given time.Duration
		rigid            bool
		want             time.Duration
	}{
		{"twice as long", time.Second, 51 * ms, 0, false, 2 * time.Second},
		{"as long as it takes", time.Second, 128*ms + 12345, 0, false, 3 * time.Second},
		{"once more", 3 * time.Second, 160 * ms, 0, false, 6 * time.Second},
		{"not without end", 6 * time.Second, time.Second, 0, false, 8 * time.Second},
		{"the user's", 2500 * ms, time.Second, 2500 * ms, false, 0},
		{"the script's", time.Second, time.Second, 0, true, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			o := Settings{Worlds: []string{worlds.Sim, "process"}, TTL: c.given}
			j := o.Rerun(Job{Place: o.At("process")}, Played{Late: c.late, Rigid: c.rigid, Cell: reports.Cell{Lease: c.was, Reason: "late"}})
			if j.TTL != c.want || j.Twin != (c.want > 0) || len(j.Late) != 1 {
				t.Errorf("TTL %v, want %v; twin %v, late %q", j.TTL, c.want, j.Twin, j.Late)
			}
		})
	}
}

// A cell in error is played once more where the machine was late, not again and again.
func TestDeservesAnother(t *testing.T) {
	for _, c := range []struct {
		late    time.Duration
		verdict reports.Verdict
		before  int
		rigid   bool
		ttl     time.Duration
		want    bool
	}{
		{time.Second, reports.Unknown, 0, false, 0, true},
		{time.Second, reports.Unknown, 2, false, 0, true},
		{time.Second, reports.Unknown, 3, false, 0, false},
		{time.Second, reports.Unknown, 3, true, 0, true}, // the lease is as long as the script has it
		{time.Second, reports.Unknown, 8, true, 0, true},
		{time.Second, reports.Unknown, 9, true, 0, false},
		{time.Second, reports.Unknown, 3, true, time.Second, false}, // as its user has it
		{time.Second, reports.Error, 0, false, 0, true},
		{time.Second, reports.Error, 1, false, 0, false},
		{0, reports.Unknown, 0, false, 0, false},
		{0, reports.Error, 0, false, 0, false},
	} {
		o := Settings{TTL: c.ttl}
		j := Job{Late: make([]string, c.before)}
		if got := o.deservesAnother(j, Played{Late: c.late, Rigid: c.rigid, Cell: reports.Cell{Verdict: c.verdict}}); got != c.want {
			t.Errorf("%s, late by %v, played %d times before, rigid %t, lease %v: %t", c.verdict, c.late, c.before, c.rigid, c.ttl, got)
		}
	}
}
