package reports_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/lockfault/lockfault/internal/schematest"
	"github.com/lockfault/lockfault/reports"
)

// TestResultsHaveTheSchema checks results.json against the published schema.
func TestResultsHaveTheSchema(t *testing.T) {
	for name, dir := range map[string]string{
		"sample":  write(t, sample(), order(len(sample()))),
		"later":   write(t, later(), order(len(later()))),
		"derived": write(t, []reports.Cell{derived()}, []int{0}),
		"none":    write(t, nil, nil),
		"hostile": hostileReport(t),
	} {
		text, err := os.ReadFile(filepath.Join(dir, reports.ResultsFile))
		if err != nil {
			t.Fatal(err)
		}
		if err := schematest.Results(text); err != nil {
			t.Errorf("%s: %.2000v", name, err)
		}
	}
}
