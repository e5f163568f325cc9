package explorecmd

import (
	"testing"

	"github.com/lockfault/lockfault/internal/explore"
	"github.com/lockfault/lockfault/reports"
)

// layers are how many states there were in those of some searches: getset-timestamp
// --advance 1; set-nx-px-lua --clients 3 --rounds 2; set-nx-px-del --advance 1 --crash 1
// --rounds 2; set-nx-px-lua --failover 1 --crash 1.
var layers = [][]int{
	{3, 4, 9, 18, 37, 70, 100, 110, 142, 157, 103, 102, 80, 36},
	{2, 2, 4, 8, 18, 40, 67, 109, 163, 250, 333, 450, 484, 486, 432, 355, 271, 162, 123, 48, 42, 9, 9, 1, 1},
	{3, 5, 16, 46, 108, 202, 337, 568, 918, 1401, 1910, 2360, 2680, 2624, 2430, 1499, 1136, 345, 232},
	{4, 8, 26, 81, 213, 413, 605, 675, 690, 545, 367, 181, 60, 4},
}

// What is said of states to come is true within a factor of two and a half, as long as a
// twentieth of them is to come; and something is said once layers shrink.
func TestTrend(t *testing.T) {
	for _, sizes := range layers {
		all := 0
		for _, n := range sizes {
			all += n
		}
		var tr trend
		seen, said := 0, 0
		for i, n := range sizes {
			for _, part := range []int{n / 2, n - n/2} { // told twice in each layer
				seen += part
				tr.add(explore.Result{Depth: i + 1, States: seen})
			}
			if tr.next() != n {
				t.Errorf("in layer %d there are %d new states, want %d", i+1, tr.next(), n)
			}
			// What was said when the layer began.
			left, ok := tr.left()
			shrinks := i > 1 && sizes[i-1] < sizes[i-2]
			if ok && !shrinks {
				t.Errorf("layer %d of %v grows, and %d are said to be left", i, sizes, left)
			}
			to := all - seen + n
			if !ok || to < all/20 {
				continue
			}
			said++
			if left*5 < to*2 || left*2 > to*5 {
				t.Errorf("after %d layers of %v %d are said to be left, and %d are", i, sizes, left, to)
			}
		}
		if said < 2 {
			t.Errorf("of %v it said something %d times", sizes, said)
		}
	}
}

func TestTrendSays(t *testing.T) {
	var tr trend
	states := 0
	for i, n := range []int{100, 900, 6000, 12000, 15000, 12000, 5100} {
		states += n
		tr.add(explore.Result{Depth: i + 1, States: states})
		want := map[int]string{0: "next layer 100", 3: "next layer 12,000", 6: "next layer 5,100, perhaps 270 to go"}[i]
		if got := tr.String(); want != "" && got != want {
			t.Errorf("layer %d: %q, want %q", i+1, got, want)
		}
	}
	for n, want := range map[int]string{0: "0", 999: "999", 1000: "1,000", 1234567: "1,234,567"} {
		if got := reports.Thousands(n); got != want {
			t.Errorf("%d is %s", n, got)
		}
	}
	for n, want := range map[int]int{0: 0, 99: 99, 104: 100, 105: 110, 12345: 12000} {
		if got := rounded(n); got != want {
			t.Errorf("%d is about %d, want %d", n, got, want)
		}
	}
}
