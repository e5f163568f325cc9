package linear

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

// Whether two of many holds overlap for certain is what looking at each pair says.
func TestClash(t *testing.T) {
	clients := []*client{{name: "A"}, {name: "B"}, {name: "C"}}
	yes := 0
	for i := range 20_000 {
		r := rand.New(rand.NewPCG(uint64(i), 1))
		c := &Checker{opts: Options{Skew: time.Duration(r.IntN(4))}, now: time.Duration(r.IntN(14)), ending: r.IntN(2) == 0}
		var set []*hold
		from := time.Duration(0)
		for range 1 + r.IntN(5) {
			h := &hold{owner: &owner{client: clients[r.IntN(3)]}, brief: r.IntN(6) == 0}
			from += time.Duration(r.IntN(3))
			h.from.time, h.until = from, from+time.Duration(r.IntN(8))
			if r.IntN(5) == 0 {
				h.until = math.MaxInt64
			}
			set = append(set, h)
		}
		want := slices.ContainsFunc(set, func(h *hold) bool {
			return slices.ContainsFunc(set, func(o *hold) bool { return c.pair(h, o) })
		})
		if want {
			yes++
		}
		if got := c.clash(set); got != want {
			t.Fatalf("%d: clash says %v of %d holds", i, got, len(set))
		}
	}
	t.Logf("%d of 20000 clash", yes)
}

// pair says whether two holds overlap for certain.
func (c *Checker) pair(h, o *hold) bool {
	outlasts := func(h, o *hold) bool {
		end := h.end().time
		if !c.ending {
			end = min(end, c.now)
		}
		return end == math.MaxInt64 || end-o.from.time > 2*c.opts.Skew
	}
	return h.owner.client != o.owner.client && !h.brief && !o.brief && outlasts(h, o) && outlasts(o, h)
}
