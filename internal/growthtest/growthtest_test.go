package growthtest

import "testing"

// A recorder notes whether a test failed.
type recorder struct {
	testing.TB
	failed bool
}

func (r *recorder) Helper()               {}
func (r *recorder) Errorf(string, ...any) { r.failed = true }

var sink int

func TestSlowLinear(t *testing.T) {
	work := func(steps int) func() {
		return func() {
			for i := range steps {
				sink += i
			}
		}
	}
	for name, c := range map[string]struct {
		steps func(n int) int
		fails bool
	}{
		"linear":    {func(n int) int { return 200 * n }, false},
		"quadratic": {func(n int) int { return n * n / 3 }, true},
	} {
		r := &recorder{TB: t}
		Linear(r, 5_000, func(n int) func() { return work(c.steps(n)) })
		if r.failed != c.fails {
			t.Errorf("%s growth: failed is %v", name, r.failed)
		}
	}
}
