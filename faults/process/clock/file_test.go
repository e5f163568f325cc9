package clock

import (
	"math/big"
	"testing"

	"pgregory.net/rapid"
)

// Both sides must count alike, or a span would jump whenever a rate changes.
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
