package worlds_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/lockfault/lockfault/faults"
	"github.com/lockfault/lockfault/internal/harness"
	"github.com/lockfault/lockfault/internal/worlds"
	"github.com/lockfault/lockfault/scenarios"
	"github.com/lockfault/lockfault/strategies/all"
)

// nowhere is a place where nothing listens: a cell that is played there ends
// in an error.
func nowhere(nodes int) worlds.Place {
	return worlds.Place{World: worlds.External, Redis: slices.Repeat([]string{"127.0.0.1:1"}, nodes)}
}

// What needs the servers' obedience is not applicable to a Redis that isn't
// ours, which is known before anything is touched, and the reason says which
// step it is.
func TestExternalDecidesBeforeItTouches(t *testing.T) {
	tests := []struct{ script, says string }{
		{"clients A\nn1 crash\nexpect none", `line 2, "n1 crash": this Redis is not ours`},
		{"clients A\nA acquire\nn1 flush\nexpect none", `line 3, "n1 flush"`},
		{"clients A\nn1 pause\nexpect none", "n1 pause"},
		{"clients A\nn1 clock -2ttl\nexpect none", "n1 clock -2ttl"},
		{"clients A\nn1 drift 1.5\nexpect none", "n1 drift"},
		{"clients A\nn1 script-flush\nexpect none", "n1 script-flush"},
		{"clients A\nreplicas 1\nA acquire\nexpect none", "replicas"},
	}
	lock, _ := all.Registry().Lookup("set-nx-px-lua")
	for _, test := range tests {
		script, err := scenarios.Parse("test.txt", []byte(test.script))
		if err != nil {
			t.Fatal(err)
		}
		outcome := harness.Play(t, harness.Cell{Strategy: lock, Script: script, Place: venue(t, nowhere(1))})
		if outcome.Status != harness.NotApplicable || !strings.Contains(outcome.Reason, test.says) {
			t.Errorf("%s\n%s: %s, want %q", test.script, outcome.Status, outcome.Reason, test.says)
		}
	}
}

// A strategy gets no fewer nodes than it wants.
func TestExternalCountsNodes(t *testing.T) {
	script, err := scenarios.Lookup("gc-pause-holding")
	if err != nil {
		t.Fatal(err)
	}
	redlock, _ := all.Registry().Lookup("redlock")
	outcome := harness.Play(t, harness.Cell{Strategy: redlock, Script: script, Place: venue(t, nowhere(1))})
	if want := "redlock runs on 5 nodes, --redis names 1"; outcome.Status != harness.NotApplicable || outcome.Reason != want {
		t.Errorf("%s: %s, want %s", outcome.Status, outcome.Reason, want)
	}
	sentinel := nowhere(5)
	sentinel.Sentinel = true
	if outcome := harness.Play(t, harness.Cell{Strategy: redlock, Script: script, Place: venue(t, sentinel)}); outcome.Status != harness.NotApplicable {
		t.Errorf("with sentinels: %s: %s", outcome.Status, outcome.Reason)
	}
}

// Faults of servers are not applicable to a Redis that others use, except evict, which removes only
// the lock's key.
func TestExternalFaults(t *testing.T) {
	lock, _ := all.Registry().Lookup("set-nx-px-lua")
	for _, d := range faults.Definitions() {
		harmless := d.Target == faults.OnClient || d.Target == faults.OnLinks || d.Target == faults.OnMessages || d.Name == "evict"
		f, err := scenarios.ParseFault(d.Example)
		if err != nil {
			t.Fatal(err)
		}
		script, err := scenarios.Parse("test.txt", []byte("clients A\nA acquire\nexpect none"))
		if err != nil {
			t.Fatal(err)
		}
		script.Steps = append(script.Steps, scenarios.Step{Line: 3, Do: scenarios.Inject{Fault: f}})
		outcome := harness.Play(t, harness.Cell{Strategy: lock, Script: script, Place: venue(t, nowhere(1))})
		if taken := outcome.Status != harness.NotApplicable; taken != harmless {
			t.Errorf("%s: %s: %s", f, outcome.Status, outcome.Reason)
		}
	}
}
