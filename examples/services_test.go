package examples

import (
	"os"
	"slices"
	"testing"

	"github.com/lockfault/lockfault/checker"
	"github.com/lockfault/lockfault/internal/services"
	"github.com/lockfault/lockfault/reports"
)

// Locks of one's own on another service do what they say of themselves, and what they do on the server shows.
func TestOwnLockOfService(t *testing.T) {
	t.Parallel()
	if err := (services.Postgres{}).Check(t.Context()); err != nil {
		if os.Getenv("CI") != "" {
			t.Fatal(err)
		}
		t.Skip(err)
	}
	program := build(t, "services")
	cells, _ := playAgain(t, program, "--strategy", "my-row", "--world", "process", "--scenario", "contention,gc-pause-holding,failover-replicated,holder-crash")
	if len(cells) != 4 {
		t.Errorf("%d cells", len(cells))
	}
	for _, c := range cells {
		if fails := c.Scenario == "failover-replicated"; (c.Verdict == reports.Violated) != fails || !c.AsExpected {
			t.Errorf("%s: %s %v %s", c.Scenario, c.Verdict, c.Anomalies, c.Reason)
		}
	}
	cells, _ = playAgain(t, program, "--strategy", "naive-row", "--world", "process", "--scenario", "holder-crash,release-twice")
	shows := map[string]checker.Anomaly{"holder-crash": checker.StuckLock, "release-twice": checker.ForeignRelease} // and who comes in time gets it then
	for _, c := range cells {
		if !slices.Contains(c.Anomalies, shows[c.Scenario]) || !c.AsExpected {
			t.Errorf("%s: %s %v %s; want %s", c.Scenario, c.Verdict, c.Anomalies, c.Reason, shows[c.Scenario])
		}
	}
}
