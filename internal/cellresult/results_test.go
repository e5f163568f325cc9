package cellresult

import (
	"testing"

	"github.com/lockfault/lockfault/internal/harness"
	"github.com/lockfault/lockfault/scenarios"
)

// TestLinearizableIsOfDecidedCells checks that an undecided cell has neither Linearizable nor a
// Conflict.
func TestLinearizableIsOfDecidedCells(t *testing.T) {
	for status, want := range map[harness.Status]bool{harness.Held: true, harness.Violated: true, harness.NotApplicable: false, harness.Error: false} {
		if c := Cell(harness.Sim, harness.Cell{Script: &scenarios.Script{}}, harness.Outcome{Status: status}); c.Linearizable != want || c.Conflict != nil {
			t.Errorf("%s: %v, %+v", status, c.Linearizable, c.Conflict)
		}
	}
}
