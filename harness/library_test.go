package harness_test

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/lockfault/lockfault/checker"
	"github.com/lockfault/lockfault/checker/recheck"
	"github.com/lockfault/lockfault/harness"
	"github.com/lockfault/lockfault/scenarios"
	"github.com/lockfault/lockfault/strategies"
	"github.com/lockfault/lockfault/strategies/all"
)

// eachCell calls f for every strategy under every scenario of the library, a
// scenario at a time in parallel.
func eachCell(t *testing.T, f func(t *testing.T, strategy strategies.Strategy, script *scenarios.Script)) {
	library, err := scenarios.Library()
	if err != nil {
		t.Fatal(err)
	}
	for _, script := range library {
		t.Run(script.Name, func(t *testing.T) {
			t.Parallel()
			for _, strategy := range all.Registry().All() {
				f(t, strategy, script)
			}
		})
	}
}

// encode returns the bytes of a history's file.
func encode(t *testing.T, h checker.History) []byte {
	t.Helper()
	var file bytes.Buffer
	if err := checker.Encode(&file, h); err != nil {
		t.Fatal(err)
	}
	return file.Bytes()
}

// Every cell comes out as its script expects, each witness proves what it says
// by a second, naive definition, and playing the cell again yields the same
// bytes.
func TestEveryCellTwice(t *testing.T) {
	eachCell(t, func(t *testing.T, strategy strategies.Strategy, script *scenarios.Script) {
		cell := harness.Cell{Strategy: strategy, Script: script, Seed: 1}
		first := harness.Play(t, cell)
		if first.Status == harness.NotApplicable {
			return
		}
		if first.Status == harness.Error || !slices.Equal(first.Verdict.Anomalies(), first.Expected) {
			t.Errorf("%s: %s %v, want %v\n%s", strategy.Name, first.Status, first.Verdict.Anomalies(), first.Expected, first.Reason)
		}
		for _, w := range first.Verdict.Witnesses {
			if err := recheck.Witness(first.History, w); err != nil {
				t.Errorf("%s: the witness of %s proves nothing: %v", strategy.Name, w.Anomaly, err)
			}
		}
		second := harness.Play(t, cell)
		if a, b := encode(t, first.History), encode(t, second.History); !bytes.Equal(a, b) {
			t.Errorf("%s: the same seed gave two histories, which differ from line %s", strategy.Name, difference(a, b))
		}
	})
}

// Another seed changes latencies and ties, never what a scripted scenario shows.
func TestEverySeedAgrees(t *testing.T) {
	eachCell(t, func(t *testing.T, strategy strategies.Strategy, script *scenarios.Script) {
		for seed := range seeds {
			outcome := harness.Play(t, harness.Cell{Strategy: strategy, Script: script, Seed: uint64(seed) + 2})
			if outcome.Status == harness.NotApplicable {
				return
			}
			if outcome.Status == harness.Error || !slices.Equal(outcome.Verdict.Anomalies(), outcome.Expected) {
				t.Errorf("%s with seed %d: %s %v, want %v\n%s", strategy.Name, seed+2, outcome.Status, outcome.Verdict.Anomalies(), outcome.Expected, outcome.Reason)
			}
		}
	})
}

// A lease of another length changes the times, not what a scenario shows.
func TestEveryLeaseAgrees(t *testing.T) {
	library, err := scenarios.Library()
	if err != nil {
		t.Fatal(err)
	}
	strategy, _ := all.Registry().Lookup("set-nx-px-lua")
	for _, script := range library {
		for _, ttl := range leases {
			outcome := harness.Play(t, harness.Cell{Strategy: strategy, Script: script, Seed: 1, TTL: ttl})
			if outcome.Status == harness.Error || !slices.Equal(outcome.Verdict.Anomalies(), outcome.Expected) {
				t.Errorf("%s with a TTL of %v: %s %v, want %v\n%s", script.Name, ttl, outcome.Status, outcome.Verdict.Anomalies(), outcome.Expected, outcome.Reason)
			}
		}
	}
}

// What the scripts beside these tests show, which other worlds are compared with,
// is none of chance: no seed and no lease shows another thing.
func TestTheAgreementTableIsSettled(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	for _, file := range files {
		src, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		script, err := scenarios.Parse(file, src)
		if err != nil {
			t.Fatal(err)
		}
		t.Run(script.Name, func(t *testing.T) {
			t.Parallel()
			for _, name := range []string{"set-nx-px-lua", "redisson", "set-wait", "fenced", "redlock"} {
				strategy, _ := all.Registry().Lookup(name)
				var first harness.Outcome
				for i, ttl := range []time.Duration{time.Second, 2 * time.Second, 8 * time.Second} {
					for seed := range uint64(6) {
						outcome := harness.Play(t, harness.Cell{Strategy: strategy, Script: script, Seed: seed + 1, TTL: ttl})
						if i == 0 && seed == 0 {
							first = outcome
						}
						if outcome.Status != first.Status || !slices.Equal(outcome.Verdict.Anomalies(), first.Verdict.Anomalies()) {
							t.Errorf("%s with seed %d and a TTL of %v: %s %v; with seed 1 and 1s: %s %v", name, seed+1, ttl,
								outcome.Status, outcome.Verdict.Anomalies(), first.Status, first.Verdict.Anomalies())
						}
					}
				}
			}
		})
	}
}

// difference shows where two files part.
func difference(a, b []byte) string {
	linesA, linesB := bytes.Split(a, []byte("\n")), bytes.Split(b, []byte("\n"))
	for i := range min(len(linesA), len(linesB)) {
		if !bytes.Equal(linesA[i], linesB[i]) {
			return string(linesA[i]) + "\nand\n" + string(linesB[i])
		}
	}
	return "the end of one"
}
