package bench

import (
	"reflect"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func TestSumUp(t *testing.T) {
	const ms = time.Millisecond
	got := sumUp("s", 2, 500*ms, []string{Direct, Gate}, [][]slice{
		{
			{took: []time.Duration{1 * ms, 3 * ms, 2 * ms}, inTime: 2, each: []int{2, 0}},
			{took: []time.Duration{4 * ms, 5 * ms, 6 * ms, 7 * ms}, inTime: 4, each: []int{1, 3}, failures: 1},
			{took: []time.Duration{8 * ms}, inTime: 1, each: []int{0, 1}, failures: 2},
		},
		{
			{took: []time.Duration{9 * ms}, inTime: 1, each: []int{1, 0}},
			{each: []int{0, 0}, failures: 3},
			{took: []time.Duration{9 * ms, 9 * ms}, inTime: 2, each: []int{1, 1}},
		},
	})
	want := []Cost{
		{
			Strategy: "s", Contenders: 2, Path: Direct, PairsPerSecond: 4, P50: 4 * ms, P99: 8 * ms, Pairs: 8, Failures: 3,
			Busiest: 6.0 / 7, OverDirect: 1, P50Least: 2 * ms, P50Most: 8 * ms, P99Least: 3 * ms, P99Most: 8 * ms,
		},
		{
			// No pair succeeded in the second round, which is left out of the ratio.
			Strategy: "s", Contenders: 2, Path: Gate, PairsPerSecond: 2, P50: 9 * ms, P99: 9 * ms, Pairs: 3, Failures: 3,
			Busiest: 2.0 / 3, OverDirect: 1.25, P50Least: 9 * ms, P50Most: 9 * ms, P99Least: 9 * ms, P99Most: 9 * ms,
		},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
}

// TestQuantile checks that a quantile is the smallest value that the given share of the values does
// not exceed.
func TestQuantile(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		list := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) time.Duration {
			return time.Duration(rapid.IntRange(1, 50).Draw(t, "took"))
		}), 1, 200).Draw(t, "list")
		slices.Sort(list)
		percent := rapid.IntRange(1, 100).Draw(t, "percent")
		got := quantile(list, percent)
		notAbove, below := 0, 0
		for _, d := range list {
			if d <= got {
				notAbove++
			}
			if d < got {
				below++
			}
		}
		if notAbove*100 < percent*len(list) || below*100 >= percent*len(list) {
			t.Errorf("the %d %% quantile of %v is %v", percent, list, got)
		}
	})
	if got := quantile(nil, 50); got != 0 {
		t.Errorf("the quantile of nothing is %v", got)
	}
}
