package locktest

import (
	"slices"
	"sync"
	"testing"

	"github.com/lockfault/lockfault/checker"
	"github.com/lockfault/lockfault/reports"
	"github.com/lockfault/lockfault/scenarios"
	"github.com/lockfault/lockfault/scenarios/racefree"
	"github.com/lockfault/lockfault/strategies"
)

// Fuzz lets package testing generate scripts with faults of every kind. Fuzz fails if the lock
// shows a bug that is not accepted, or if there is no verdict. The bytes of an input determine
// one choice after the other, so a small change of the bytes is a small change of the script; the
// input's number is the seed.
//
// Few locks survive every fault: when a lease expires while its holder is paused, there is an
// overlap. Such known limitations of the lock's class are no bugs; see docs/leases.md.
func Fuzz(f *testing.F, s Subject, accepts ...string) {
	f.Helper()
	accepted, err := anomaliesOf(accepts)
	if err != nil {
		f.Fatalf("locktest: %v", err)
	}
	f.Add(uint64(defaultSeed), []byte{})
	f.Add(uint64(2), []byte("\x00\x10\x20\x30\x40\x50\x60\x70\x80\x90\xa0\xb0\xc0\xd0\xe0\xf0"))
	f.Add(uint64(3), []byte("\xf0\xc0\x10\xa0\x90\x10\x50\x10\xd0\x70\x10\x30\x20\x10\x80\x10"))
	var once sync.Once
	var test *fuzzed
	f.Fuzz(func(t *testing.T, seed uint64, choices []byte) {
		once.Do(func() {
			// Finding out the kind of the lock requires a T.
			if made, err := prepare(t, s, nil); err != nil {
				t.Fatalf("locktest: %v", err)
			} else if made != nil {
				test = &fuzzed{made, accepted}
			}
		})
		if test == nil {
			t.Skip("the lock doesn't work, as the first input has said")
		}
		test.play(t, seed, choices)
	})
}

// fuzzed is a test with generated scripts.
type fuzzed struct {
	*test
	accepted []checker.Anomaly
}

func (test *fuzzed) play(t *testing.T, seed uint64, choices []byte) {
	t.Helper()
	cell := test.cell
	of := racefree.Subject{
		Name: cell.Strategy.Name, Nodes: max(1, cell.Strategy.Nodes),
		Watchdog: slices.Contains(cell.Strategy.Tags, strategies.TagRenewing),
	}
	if of.Nodes == 1 {
		of.Replicas = 1
	}
	text := racefree.Choose("fuzz", choices, of)
	var err error
	if cell.Script, err = scenarios.Parse("fuzz.txt", []byte(text)); err != nil {
		t.Fatalf("locktest: %v\n\n%s", err, text)
	}
	cell.Seed = seed
	told, o := playAccepting(t, cell, test.accepted)
	switch {
	case told.Verdict == reports.NotApplicable:
		t.Skip(told.Reason)
	case !told.Decided():
		t.Errorf("it came to no verdict: %s\n\n%s", explain(told.Reason), text)
	case !told.AsExpected:
		t.Errorf("it shows %s.\n\n%s\n%s", list(told.Extra()), text, test.story(t, told, o.History))
	}
}
