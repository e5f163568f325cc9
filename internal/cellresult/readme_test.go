package cellresult_test

import (
	"bytes"
	"os"
	"testing"

	"github.com/lockfault/lockfault/internal/cellresult"
	"github.com/lockfault/lockfault/internal/harness"
	"github.com/lockfault/lockfault/reports"
	"github.com/lockfault/lockfault/reports/svg"
	"github.com/lockfault/lockfault/scenarios"
	"github.com/lockfault/lockfault/strategies/all"
)

// TestReadmePicture checks that the README's picture is what this program draws with the default
// seed.
func TestReadmePicture(t *testing.T) {
	script, err := scenarios.Lookup("gc-pause-holding")
	if err != nil {
		t.Fatal(err)
	}
	strategy, ok := all.Registry().Lookup("set-nx-px-lua")
	if !ok {
		t.Fatal("there is no strategy set-nx-px-lua")
	}
	played := harness.Cell{Strategy: strategy, Script: script, Seed: 1}
	outcome := harness.Play(t, played)
	var b bytes.Buffer
	if err := svg.Timeline(&b, reports.Picture(cellresult.Cell("sim", played, outcome), outcome.History, reports.MostMoments), true); err != nil {
		t.Fatal(err)
	}
	want, err := os.ReadFile("../../docs/gc-pause-holding.svg")
	if err != nil || b.String() != string(want) {
		t.Errorf("docs/gc-pause-holding.svg is another picture (%v): make matrix draws it anew", err)
	}
}
