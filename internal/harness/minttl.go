package harness

import (
	"fmt"
	"time"

	"github.com/lockfault/lockfault/faults"
	"github.com/lockfault/lockfault/scenarios"
)

// Minimum lengths for a lease. Locks that find the key taken wait 100 ms before the next attempt;
// this holds for the library's locks and for most others. Scripts rely on several attempts within a
// lease, and on one attempt within a tenth of it, which is the reply timeout of a client library. A
// message takes up to 0.7 ms, so two replies within a part of the lease take up to 2.8 ms.
const (
	leastLease = 10 * 100 * time.Millisecond
	leastSpan  = 3 * time.Millisecond
)

// MinTTL returns the shortest lease for which a script has the same meaning as with a long lease,
// and the reason. The lease is in whole milliseconds.
func MinTTL(script *scenarios.Script) (least time.Duration, why string) {
	least, why = leastLease, fmt.Sprintf("locks wait %v between two tries", leastLease/10)
	room := func(span faults.Span, what string) {
		if span.TTLs <= 0 {
			return
		}
		ttl := time.Duration(float64(leastSpan) / span.TTLs)
		ttl = (ttl + time.Millisecond - 1).Truncate(time.Millisecond)
		if ttl > least {
			least, why = ttl, fmt.Sprintf("%s of %s has no room for two answers in less", what, script.Name)
		}
	}
	room(script.Patience, "the patience")
	room(script.ReadTimeout, "the read-timeout")
	for _, step := range script.Steps {
		var span faults.Span
		switch do := step.Do.(type) {
		case scenarios.Call:
			span = do.Within
		case scenarios.Await:
			span = do.Within
		case scenarios.Work:
			span = do.For
		case scenarios.Rounds:
			room(do.For, fmt.Sprintf("line %d, %q,", step.Line, step.Do))
			room(do.Think, fmt.Sprintf("line %d, %q,", step.Line, step.Do))
			span = do.Work
		case scenarios.Wait:
			span = do.For
		}
		room(span, fmt.Sprintf("line %d, %q,", step.Line, step.Do))
	}
	return least, why
}
