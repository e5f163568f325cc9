package oracle_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/lockfault/lockfault/checker"
	"pgregory.net/rapid"
)

// A judge who goes on from what was told comes to what Check comes to from the beginning, at any place of a tree of
// histories.
func TestJudgeGoesOn(t *testing.T) {
	seen := map[string]int{}
	rapid.Check(t, func(t *rapid.T) {
		histories := []checker.History{
			histories([]string{"A", "B", "C"}).Draw(t, "history"), histories([]string{"A", "B"}).Draw(t, "another"),
		}
		meta := histories[0].Meta
		sent := rapid.Bool().Draw(t, "requests say when they set out")
		judge := checker.NewJudge(meta)
		var told []checker.Event
		var places, lengths []int
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			switch rapid.IntRange(0, 4).Draw(t, "step") {
			case 0:
				if n := len(places); n > 0 {
					n = rapid.IntRange(0, n-1).Draw(t, "back")
					judge.Rollback(places[n])
					told = told[:lengths[n]]
					places, lengths = places[:n], lengths[:n]
				}
			case 1:
				places, lengths = append(places, judge.Checkpoint()), append(lengths, len(told))
			default:
				from := rapid.SampledFrom(histories).Draw(t, "from").Events
				var now time.Duration
				if n := len(told); n > 0 {
					now = told[n-1].Time
				}
				for _, e := range from[min(len(told), len(from)):min(len(told)+rapid.IntRange(1, 5).Draw(t, "events"), len(from))] {
					e.Time = max(e.Time, now)
					if e.Kind == checker.Request && sent {
						e.Sent = rapid.SampledFrom([]time.Duration{0, 0, 0, e.Time, max(0, e.Time-time.Second)}).Draw(t, "sent")
					}
					if e.Kind == checker.End {
						continue
					}
					told = append(slices.Clip(told), e)
					judge.Add(e)
				}
			}
			judged := judge.Checkpoint()
			whole := checker.History{Meta: meta, Events: told}
			if rapid.Bool().Draw(t, "ends") && len(told) > 0 {
				end := checker.Event{Kind: checker.End, Time: told[len(told)-1].Time + time.Second}
				whole.Events = append(slices.Clip(told), end)
				judge.Add(end)
			}
			got, unjudged := judge.Anomalies()
			judge.Rollback(judged)
			want := checker.Check(whole)
			if !slices.Equal(got, want.Anomalies()) || unjudged != (want.Unjudged != nil) {
				t.Fatalf("the judge says %v (unjudged: %v), and of the whole history Check says %v (%v)", got, unjudged, want.Anomalies(), want.Unjudged)
			}
			for _, a := range got {
				seen[string(a)]++
			}
			seen[fmt.Sprintf("unjudged %v, sent %v", unjudged, sent)]++
		}
	})
	t.Log(seen)
}
