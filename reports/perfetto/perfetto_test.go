package perfetto_test

import (
	"bytes"
	"encoding/json"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/lockfault/lockfault/reports/diagram"
	"github.com/lockfault/lockfault/reports/perfetto"
)

// read holds an event as a viewer reads it.
type read struct {
	Name     string
	Ph       string
	Ts, Dur  float64
	Pid, Tid int
	Args     map[string]any
}

// TestSlicesDoNotOverlap checks with random pictures that each span and moment appears with its
// time, and that slices on a thread do not overlap. Viewers would nest overlapping slices.
func TestSlicesDoNotOverlap(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := diagram.Picture{Title: rapid.String().Draw(t, "title")}
		for range rapid.IntRange(1, 3).Draw(t, "lanes") {
			p.Lanes = append(p.Lanes, diagram.Lane{Kind: diagram.LaneKind(rapid.IntRange(0, 2).Draw(t, "kind")), Name: rapid.String().Draw(t, "name")})
		}
		lane := rapid.IntRange(0, len(p.Lanes)-1)
		from := time.Duration(0)
		for range rapid.IntRange(0, 12).Draw(t, "spans") {
			from += time.Duration(rapid.Int64Range(0, 5).Draw(t, "later"))
			p.Spans = append(p.Spans, diagram.Span{Kind: diagram.SpanKind(rapid.IntRange(0, int(diagram.Repeat)).Draw(t, "span")), Lane: lane.Draw(t, "lane"),
				From: from, To: from + time.Duration(rapid.Int64Range(0, 9).Draw(t, "length")), Label: rapid.String().Draw(t, "label")})
		}
		for i := range rapid.IntRange(0, 5).Draw(t, "moments") {
			p.Points = append(p.Points, diagram.Point{Event: i, At: time.Duration(1001 * i), From: rapid.IntRange(-1, len(p.Lanes)-1).Draw(t, "from"), To: -1})
		}
		var b bytes.Buffer
		if err := perfetto.Write(&b, p); err != nil {
			t.Fatal(err)
		}
		var all struct{ TraceEvents []read }
		if err := json.Unmarshal(b.Bytes(), &all); err != nil {
			t.Fatalf("%v in\n%s", err, b.String())
		}
		spans, moments := 0, 0
		ends := map[[2]int]float64{}
		for _, e := range all.TraceEvents {
			thread := [2]int{e.Pid, e.Tid}
			switch e.Ph {
			case "X":
				spans++
				if e.Ts+1e-9 < ends[thread] {
					t.Fatalf("%+v begins before %v", e, ends[thread])
				}
				ends[thread] = e.Ts + e.Dur
			case "i":
				if want := float64(moments) * 1.001; e.Ts < want-1e-9 || e.Ts > want+1e-9 {
					t.Fatalf("%+v, want it at %v µs", e, want)
				}
				moments++
			}
		}
		if spans != len(p.Spans) || moments != len(p.Points) {
			t.Fatalf("%d spans and %d moments of %d and %d", spans, moments, len(p.Spans), len(p.Points))
		}
	})
}
