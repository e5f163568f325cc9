package registrytest_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/lockfault/lockfault/internal/harness"
	"github.com/lockfault/lockfault/internal/racetest"
	"github.com/lockfault/lockfault/scenarios"
	"github.com/lockfault/lockfault/strategies"
)

func TestLeastTTL(t *testing.T) {
	for _, c := range []struct {
		script string
		least  time.Duration
		why    string
	}{
		{"A acquire\nwait 1.1ttl\nA release\n", time.Second, "locks wait 100ms between two tries"},
		{"A acquire\nwait 1ms\nA release\n", time.Second, "two tries"},
		{"A acquire\nwait 0.003ttl\n", time.Second, "two tries"},
		{"A acquire\nwait 0.001ttl\n", 3 * time.Second, `line 3, "wait 0.001ttl", of mine has no room for two answers in less`},
		{"A acquire within 0.001ttl\n", 3 * time.Second, "line 2"},
		{"begin A acquire\nawait A done within 0.0007ttl\n", 4286 * time.Millisecond, "line 3"},
		{"A work 0.001ttl\nA rounds 2 work 0.0005ttl\n", 6 * time.Second, "line 3"},
		{"patience 0.001ttl\nA acquire\n", 3 * time.Second, "the patience of mine"},
		{"read-timeout 0.0001ttl\nA acquire\n", 30 * time.Second, "the read-timeout of mine"},
		{"A acquire\nlatency A n1 0.0001ttl\n", time.Second, "two tries"}, // a link's affair
	} {
		script, err := scenarios.Parse("mine.txt", []byte("clients A\n"+c.script+"expect none\n"))
		if err != nil {
			t.Fatal(err)
		}
		least, why := harness.MinTTL(script)
		if least != c.least || !strings.Contains(why, c.why) {
			t.Errorf("%q: %v, because %s; want %v, because %s", c.script, least, why, c.least, c.why)
		}
	}
}

// With its shortest lease every scenario of the library still shows of every
// strategy what it expects; of one, where cells are expensive.
func TestEveryLeaseAgreesFromTheLeast(t *testing.T) {
	racetest.Skip(t)
	eachCell(t, func(t *testing.T, strategy strategies.Strategy, script *scenarios.Script) {
		if raced && strategy.Name != "set-nx-px-lua" {
			return
		}
		ttl, _ := harness.MinTTL(script)
		outcome := harness.Play(t, harness.Cell{Strategy: strategy, Script: script, Seed: 1, TTL: ttl})
		if outcome.Status == harness.Error || outcome.Status != harness.NotApplicable && !slices.Equal(outcome.Verdict.Anomalies(), outcome.Expected) {
			t.Errorf("%s with a TTL of %v: %s %v, want %v\n%s", strategy.Name, ttl, outcome.Status, outcome.Verdict.Anomalies(), outcome.Expected, outcome.Reason)
		}
	})
}
