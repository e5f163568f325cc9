package main

import (
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/lockfault/lockfault/reports"
	"github.com/lockfault/lockfault/scenarios/racefree"
)

// The replica that a WAIT of 100 ms hears of in time at a lease of a second hears of it with
// some seeds at one of eight.
func TestSlowChance(t *testing.T) {
	dir := t.TempDir()
	o := options{lockfault: filepath.Join(dir, "lockfault")}
	if text, err := exec.CommandContext(t.Context(), "go", "build", "-o", o.lockfault, "../../../cmd/lockfault").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	const name = "set-wait-79704883"
	of := subjects()[3]
	if err := write(dir, name, racefree.Script(name, 79704883, of)); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		lease time.Duration
		twin  *reports.ReferenceCell
		want  bool
	}{
		{8 * time.Second, &reports.ReferenceCell{}, true},
		{8 * time.Second, nil, false},
		{time.Second, &reports.ReferenceCell{}, false},
	} {
		got, err := o.chance(t.Context(), dir, reports.Cell{Strategy: of.Name, Scenario: name, Lease: c.lease, Twin: c.twin})
		if err != nil || got != c.want {
			t.Errorf("at a lease of %v, twin %v: %v, %v", c.lease, c.twin, got, err)
		}
	}
}
