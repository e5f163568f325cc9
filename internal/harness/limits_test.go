package harness_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/lockfault/lockfault/internal/harness"
	"github.com/lockfault/lockfault/scenarios"
	"github.com/lockfault/lockfault/strategies/all"
)

// A history ends before it fills the machine's memory, and the cell is in error.
func TestSlowEndlessHistory(t *testing.T) {
	t.Parallel()
	script, err := scenarios.Parse("endless.txt", []byte("clients A B\n\nA B rounds for 1000h work 1ms\n\nexpect none\n"))
	if err != nil {
		t.Fatal(err)
	}
	s, _ := all.Registry().Lookup("set-nx-px-lua")
	o := harness.Play(t, harness.Cell{Strategy: s, Script: script, Seed: 1})
	if o.Status != harness.Error || !strings.Contains(o.Reason, fmt.Sprintf("has %d events, and may have no more", harness.MaxEvents)) || len(o.History.Events) > harness.MaxEvents {
		t.Errorf("%s: %s, %d events", o.Status, o.Reason, len(o.History.Events))
	}
}
