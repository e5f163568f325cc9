package worlds

import (
	"testing"
	"time"

	"github.com/lockfault/lockfault/harness"
	"github.com/lockfault/lockfault/scenarios"
)

// What a script counts on bounds how late the machine may be.
func TestBearable(t *testing.T) {
	for steps, want := range map[string]time.Duration{
		"A acquire":                                  50 * time.Millisecond,
		"n1 replication delay 50ms\nA acquire":       25 * time.Millisecond,
		"n1 replication delay 0.01ttl\nA acquire":    50 * time.Millisecond,
		"delay A after SET by 40ms\nA acquire":       20 * time.Millisecond,
		"latency 2ms\nA acquire":                     50 * time.Millisecond, // nothing must happen within that
		"n1 replication delay 10s\nA acquire":        50 * time.Millisecond,
		"A acquire\nwait 10ms\nn1 replication start": 50 * time.Millisecond,
	} {
		script, err := scenarios.Parse("mine.txt", []byte("clients A\nreplicas 1\n\n"+steps+"\n\nexpect none\n"))
		if err != nil {
			t.Fatal(err)
		}
		if got := bearable(harness.Cell{Script: script, TTL: time.Second}); got != want {
			t.Errorf("%s: %v; want %v", steps, got, want)
		}
	}
}
