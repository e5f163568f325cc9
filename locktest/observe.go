package locktest

import (
	"fmt"
	"testing"

	"github.com/lockfault/lockfault/checker"
	"github.com/lockfault/lockfault/internal/leases"
	"github.com/lockfault/lockfault/reports"
)

// observe plays the probes, which show what the lock does, and adds tags for it to the test's strategy.
// The error describes the failure of a lock without any fault.
func (test *test) observe(t *testing.T) error {
	histories := map[string]checker.History{}
	for _, script := range leases.Probes(test.cell.Strategy) {
		cell, h, err := test.perform(t, script)
		if err == nil && cell.Verdict == reports.Error {
			err = fmt.Errorf("%s", cell.Reason)
		}
		if err != nil {
			return fmt.Errorf("%s", explain(err.Error()))
		}
		histories[script.Name] = h
		if test.observed, err = leases.Observe(test.cell.Strategy, histories); err != nil {
			return err
		}
	}
	test.cell.Strategy.Tags = test.observed.Tags
	return nil
}
