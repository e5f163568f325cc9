package linear

import (
	"testing"
	"time"

	"github.com/lockfault/lockfault/internal/racetest"
)

// An overlap of three clients among a hundred thousand operations is explained by its four events, whoever waits all the time.
func TestExplainsBigHistories(t *testing.T) {
	racetest.Skip(t)
	for name, spec := range map[string]Spec{"mutex": Mutex(), "semaphore": Semaphore(1)} {
		t.Run(name, func(t *testing.T) {
			events := contended(100_000, 1000, false)
			start := time.Now()
			e, ok := Explain(spec, events, Options{})
			t.Logf("%d events of %d in %v", len(e.Events), e.Of, time.Since(start))
			if !ok || !e.Smallest || len(e.Events) != 4 || e.Of < len(events)*8/10 {
				t.Errorf("explained: %v, smallest: %v, of %d events by\n\t%s", ok, e.Smallest, e.Of, notation(e.Events))
			}
		})
	}
}
