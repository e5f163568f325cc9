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
		in    stretch
		bound time.Duration
		want  stretch
		ok    bool
	}{
		{"no pause near", stretch{0, 5}, 5, stretch{0, 5}, true},
		{"too short", stretch{0, 5}, 6, stretch{}, false},
		{"up to a pause", stretch{2, 15}, 8, stretch{2, 10}, true},
		{"from a pause on", stretch{15, 29}, 9, stretch{20, 29}, true},
		{"between pauses", stretch{5, 45}, 10, stretch{20, 30}, true},
		{"no part is long enough", stretch{5, 45}, 11, stretch{}, false},
		{"behind all pauses", stretch{35, 60}, 20, stretch{40, 60}, true},
		{"all of it a pause", stretch{11, 19}, 1, stretch{}, false},
		{"empty", stretch{5, 3}, 1, stretch{}, false},
	} {
		got, ok := test.in.longEnough(test.bound, pauses)
		if ok != test.ok || ok && got != test.want {
			t.Errorf("%s: got %v %v, want %v %v", test.name, got, ok, test.want, test.ok)
		}
	}
}
