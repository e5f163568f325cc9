package examples

import (
	"os"
	"testing"

	"github.com/lockfault/lockfault/reports"
	"github.com/lockfault/lockfault/services"
)

// A lock of one's own on another service does what it says of itself.
func TestServiceOfOnesOwnLock(t *testing.T) {
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
}
