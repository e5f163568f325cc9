package clock

import (
	"math/big"
	"testing"

	"pgregory.net/rapid"
)

// TestScale checks scale against exact arithmetic. Go and the shim must agree, or a span would jump
// whenever a rate changes.
func TestScale(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		ns := rapid.Int64Range(-1<<53, 1<<53).Draw(t, "ns")
		drift := rapid.Int64Range(-1<<32, MaxRate<<32).Draw(t, "drift")
		want := new(big.Int).Mul(big.NewInt(ns), big.NewInt(drift))
		want.Rsh(want, 32) // rounds down
		if want.IsInt64() && scale(ns, drift) != want.Int64() {
			t.Fatalf("scale(%d, %d) = %d, want %d", ns, drift, scale(ns, drift), want)
		}
	})
}

// TestSpansGoOn checks that a span is the sum of the parts at each rate, however often the rate
// changes.
func TestSpansGoOn(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		now := rapid.Int64Range(0, 1<<50).Draw(t, "start")
		s := slot{}.next(slot{since: now}, 0, 1)
		span := func() int64 { return now + s.warp + scale(now-s.since, s.drift) }
		for range rapid.IntRange(1, 10).Draw(t, "changes") {
			before, begun := span(), now
			s = s.next(slot{since: now}, 0, rapid.Float64Range(0.001, MaxRate).Draw(t, "rate"))
			if span() != before {
				t.Fatalf("a change of rate moved a span by %d ns", span()-before)
			}
			now += rapid.Int64Range(0, 1<<42).Draw(t, "passed")
			want := now - begun + scale(now-begun, s.drift)
			if got := span() - before; got != want {
				t.Fatalf("a span of %d ns, want %d", got, want)
			}
		}
	})
}
