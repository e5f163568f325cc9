package checker

import (
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func TestOtherInterval(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		small := rapid.IntRange(0, 12)
		items := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) interval {
			begin := small.Draw(t, "begin")
			return interval{rapid.IntRange(0, 3).Draw(t, "client"), begin, begin + small.Draw(t, "length")}
		}), 0, 10).Draw(t, "items")
		x, from, to := rapid.IntRange(-1, 4).Draw(t, "x"), small.Draw(t, "from"), small.Draw(t, "to")
		meets := func(i interval) bool { return i.client != x && i.begin < to && i.end > from }

		s := newIntervals(slices.Clone(items))
		at := s.other(x, from, to)
		if want := slices.ContainsFunc(items, meets); (at >= 0) != want {
			t.Fatalf("found %d, by definition: %v", at, want)
		}
		if at >= 0 && !meets(s.items[at]) {
			t.Fatalf("found %+v, which is not in the range", s.items[at])
		}
	})
}

func TestLongEnough(t *testing.T) {
	pauses := []pause{{from: 10, to: 20}, {from: 30, to: 40}}
	for _, test := range []struct {
		name  string
		in    timeRange
		bound time.Duration
		want  timeRange
		ok    bool
	}{
		{"no pause near", timeRange{0, 5}, 5, timeRange{0, 5}, true},
		{"too short", timeRange{0, 5}, 6, timeRange{}, false},
		{"up to a pause", timeRange{2, 15}, 8, timeRange{2, 10}, true},
		{"from a pause on", timeRange{15, 29}, 9, timeRange{20, 29}, true},
		{"between pauses", timeRange{5, 45}, 10, timeRange{20, 30}, true},
		{"no part is long enough", timeRange{5, 45}, 11, timeRange{}, false},
		{"behind all pauses", timeRange{35, 60}, 20, timeRange{40, 60}, true},
		{"all of it a pause", timeRange{11, 19}, 1, timeRange{}, false},
		{"empty", timeRange{5, 3}, 1, timeRange{}, false},
	} {
		got, ok := test.in.longEnough(test.bound, pauses)
		if ok != test.ok || ok && got != test.want {
			t.Errorf("%s: got %v %v, want %v %v", test.name, got, ok, test.want, test.ok)
		}
	}
}
