package history_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/lockfault/lockfault/checker"
	"github.com/lockfault/lockfault/checker/history"
	"github.com/lockfault/lockfault/checker/linear"
	"github.com/lockfault/lockfault/internal/harness"
	"github.com/lockfault/lockfault/scenarios"
	"github.com/lockfault/lockfault/strategies/all"
)

// judged returns what the server's clock makes of a history of a cell.
func judged(t *testing.T, strategy, scenario string) (linear.Result, error) {
	t.Helper()
	script, err := scenarios.Lookup(scenario)
	if err != nil {
		t.Fatal(err)
	}
	s, ok := all.Registry().Lookup(strategy)
	if !ok {
		t.Fatalf("there is no strategy %s", strategy)
	}
	var file bytes.Buffer
	if err := checker.Encode(&file, harness.Play(t, harness.Cell{Strategy: s, Script: script, Seed: 1}).History); err != nil {
		t.Fatal(err)
	}
	var events []linear.Event
	for e, err := range history.New(&file, history.Options{ByServer: true}).Events() {
		if err != nil {
			return linear.Result{}, err
		}
		events = append(events, e)
	}
	return linear.Check(linear.Lease(linear.ByServer), events, linear.Options{}), nil
}

// TestServersClock judges cells by the server's clock, which only a lock's own faults violate:
// who stops for longer than the lease has lost it by then.
func TestServersClock(t *testing.T) {
	for _, test := range []struct {
		strategy, scenario string
		want               linear.Verdict
	}{
		{"set-nx-px-lua", "gc-pause-holding", linear.Valid},
		{"set-nx-px-lua", "work-exceeds-ttl", linear.Valid},
		{"set-nx-px-lua", "holder-crash", linear.Valid},
		{"set-nx-px-del", "late-release", linear.Invalid}, // it deletes another's key
		{"set-nx-px-lua", "late-release", linear.Valid},
		{"set-nx-px-lua", "server-clock-forward", linear.Valid}, // by that clock it was over
		{"set-nx-px-lua", "server-clock-back", linear.Valid},
		{"set-nx-px-lua", "flush", linear.Invalid}, // no lease ended
	} {
		got, err := judged(t, test.strategy, test.scenario)
		if err != nil || got.Verdict != test.want {
			t.Errorf("%s under %s: %s %v (%v), want %s", test.strategy, test.scenario, got.Verdict, got.Violations, err, test.want)
		}
	}
}

func TestServersClockRefuses(t *testing.T) {
	if _, err := judged(t, "redlock", "gc-pause-holding"); err == nil || !strings.Contains(err.Error(), "several clocks") {
		t.Errorf("five servers: %v", err)
	}
	for _, test := range []struct{ name, text, want string }{
		{"whose lease it was is not known", `{"t":1,"kind":"state","node":"n1","value":"x","cause":"command"}
{"t":2,"kind":"state","node":"n1","cause":"expiry"}`, "whose is not known"},
		{"another server", `{"t":1,"kind":"state","node":"n1","owner":"A","value":"A1","cause":"command"}
{"t":2,"kind":"state","node":"n1","server":"n1/1","cause":"expiry"}`, "n1/1 says something of the key, and before it n1/0"},
	} {
		for _, asked := range []bool{true, false} {
			var err error
			for _, e := range history.New(strings.NewReader(test.text), history.Options{ByServer: asked}).Events() {
				err = e
			}
			if refused := err != nil && strings.Contains(err.Error(), test.want); refused != asked {
				t.Errorf("%s, by the server's clock %v: %v", test.name, asked, err)
			}
		}
	}
}
