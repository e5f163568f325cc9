package diagram_test

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/lockfault/lockfault/reports/diagram"
)

const lease = 30 * time.Second

func ms(list ...float64) []time.Duration {
	var times []time.Duration
	for _, n := range list {
		times = append(times, time.Duration(n*float64(time.Millisecond)))
	}
	return times
}

// TestAxis checks that a lease has a visible length, that commands of half a millisecond are
// distinct, and that times too long for either scale are folded.
func TestAxis(t *testing.T) {
	a := diagram.NewAxis(lease, ms(0, 0.5, 1, 15_001, 15_001.5, 100_000, 100_050, 100_050.5))
	want := []struct {
		scale diagram.Scale
		of    time.Duration
	}{
		{diagram.Magnified, time.Millisecond},
		{diagram.ToLease, 15 * time.Second},
		{diagram.Magnified, time.Millisecond / 2},
		{diagram.Folded, 84_998_500 * time.Microsecond},
		{diagram.Folded, 50 * time.Millisecond},
		{diagram.Magnified, time.Millisecond / 2},
	}
	pieces := a.Pieces()
	if len(pieces) != len(want) {
		t.Fatalf("pieces %+v, want %+v", pieces, want)
	}
	for i, p := range pieces {
		if p.Scale != want[i].scale || p.Length() != want[i].of {
			t.Errorf("piece %d is %v long on scale %d, want %+v", i, p.Length(), p.Scale, want[i])
		}
	}
	if got := a.X(ms(15_001)[0]) - a.X(ms(1)[0]); math.Abs(got-a.LeaseWidth/2) > 0.01 {
		t.Errorf("half a lease is %v wide, and a lease %v", got, a.LeaseWidth)
	}
	if a.Digits != 4 {
		t.Errorf("%d digits tell the times apart, want 4", a.Digits)
	}
}

// TestAxisIsInOrderAndToScale checks for random times that later times are further to the right,
// and that the segments at the lease's scale have one scale.
func TestAxisIsInOrderAndToScale(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 2000 {
		var times []time.Duration
		for range random.IntN(40) {
			times = append(times, time.Duration(math.Pow(10, 2+random.Float64()*10)))
		}
		a := diagram.NewAxis(lease, times)
		var last diagram.Segment
		for i, s := range a.Segments {
			if i > 0 && (s.From != last.To || math.Abs(s.X-last.X-last.Width) > 1e-6) || s.Width < 5 {
				t.Fatalf("times %v: segment %+v behind %+v", times, s, last)
			}
			if s.Scale == diagram.ToLease && math.Abs(s.Width/float64(s.Length())*float64(lease)-a.LeaseWidth) > 1e-6 {
				t.Fatalf("times %v: %+v is not to the scale of a lease of %v", times, s, a.LeaseWidth)
			}
			last = s
		}
		for _, at := range times {
			if x, y := a.X(at), a.X(at+time.Microsecond); x > y+1e-9 || x < 0 || x > a.Width() {
				t.Fatalf("times %v: %v lies at %v, and a microsecond later at %v", times, at, x, y)
			}
		}
	}
}

func TestWords(t *testing.T) {
	for d, want := range map[time.Duration]string{
		0: "0 ns", 475817: "476 µs", 1_520_000: "1.52 ms", 109 * time.Millisecond: "109 ms", 30 * time.Second: "30 s", 33*time.Second + time.Millisecond: "33 s", 2 * time.Hour: "7200 s",
	} {
		if got := diagram.Words(d); got != want {
			t.Errorf("%d is %q, want %q", d, got, want)
		}
	}
}
