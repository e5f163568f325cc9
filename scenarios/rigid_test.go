package scenarios_test

import (
	"testing"

	"github.com/lockfault/lockfault/scenarios"
)

// A script that tells time in seconds would be another one with a longer lease; a
// microsecond is there for what comes first.
func TestRigid(t *testing.T) {
	for line, want := range map[string]bool{
		"wait 1.1ttl":               false,
		"wait 1µs":                  false,
		"latency 0s":                false,
		"wait 1s":                   true,
		"wait 1ms":                  true,
		"n1 replication delay 50ms": true,
		"A clock +2s":               true,
	} {
		script, err := scenarios.Parse("test.txt", []byte("clients A\nreplicas 1\n\n"+line+"\n\nexpect none\n"))
		if err != nil {
			t.Fatal(err)
		}
		if got := script.Rigid(); got != want {
			t.Errorf("%s: rigid %t, want %t", line, got, want)
		}
	}
}
