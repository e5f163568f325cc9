package oracle_test

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/lockfault/lockfault/checker"
	"github.com/lockfault/lockfault/internal/oracle"
)

// Histories on which the checker and the naive definitions once disagreed, and
// what they show of what they are about.
func TestKeptHistories(t *testing.T) {
	for name, want := range map[string]struct {
		anomaly checker.Anomaly
		shows   bool
	}{
		"renewed-after-validity":  {checker.StuckLock, true},
		"granted-inside-a-hold":   {checker.StaleWrite, false},
		"over-before-it-returned": {checker.StaleWrite, true},
		"gone-with-its-server":    {checker.Unavailable, true},
		"moved-along-and-stuck":   {checker.StuckLock, true},
		"moved-along-and-lost":    {checker.LostLock, true},
		"promoted-with-its-own":   {checker.Ghost, true},
	} {
		file, err := os.Open(filepath.Join("testdata", name+".jsonl"))
		if err != nil {
			t.Fatal(err)
		}
		history, err := checker.Decode(file)
		file.Close()
		if err != nil {
			t.Fatal(err)
		}
		verdict := checker.Check(history)
		if got := slices.Contains(verdict.Anomalies(), want.anomaly); got != want.shows {
			t.Errorf("%s: %s is shown: %t; want %t", name, want.anomaly, got, want.shows)
		}
		for _, w := range verdict.Witnesses {
			if err := oracle.Witness(history, w); err != nil {
				t.Errorf("%s: the witness of %s proves nothing: %v", name, w.Anomaly, err)
			}
		}
	}
}
