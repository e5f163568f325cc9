package cli

import (
	"fmt"
	"math"

	"github.com/lockfault/lockfault/internal/explore"
	"github.com/lockfault/lockfault/reports"
)

// A trend follows how many states there are in each layer of a search, the paths of one
// length, to guess how many are to come.
//
// The ratio of a layer to the one before falls from layer to layer, and its logarithm
// does so nearly along a line. As long as layers grow, where that line ends is
// anybody's guess: it was wrong tenfold and more. Once they shrink, it was right within a
// factor of two and a half in each of four searches, until a twentieth of their states was left. So
// nothing is said before.
type trend struct {
	sizes  []int // of the layers that are complete
	depth  int
	before int // how many states there were when the layer of this depth began
	states int
}

// add takes note of a result so far.
func (t *trend) add(r explore.Result) {
	if r.Depth > t.depth {
		if t.depth > 0 {
			t.sizes = append(t.sizes, t.states-t.before)
		}
		t.depth, t.before = r.Depth, t.states
	}
	t.states = r.States
}

// next returns how many states of the layer that is being looked at are new so far: the
// next layer begins at these.
func (t *trend) next() int { return t.states - t.before }

// The ratios that the line is laid through: at most, and at least.
const (
	mostRatios  = 8
	leastRatios = 4
)

// left returns a guess of how many states are still to come after the last complete layer; false where
// there is no telling.
func (t *trend) left() (int, bool) {
	n := len(t.sizes)
	if n <= leastRatios || t.sizes[n-1] >= t.sizes[n-2] {
		return 0, false
	}
	var ratios []float64 // their logarithms
	for i := max(1, n-mostRatios); i < n; i++ {
		if t.sizes[i-1] < 1 || t.sizes[i] < 1 {
			return 0, false
		}
		ratios = append(ratios, math.Log(float64(t.sizes[i])/float64(t.sizes[i-1])))
	}
	mean, slope := line(ratios)
	ratio := mean + slope*float64(len(ratios)-1)/2 // the line at the last one
	if slope >= 0 || ratio >= 0 {
		return 0, false
	}
	sum, size := 0.0, float64(t.sizes[n-1])
	for range mostLayers {
		if ratio += slope; size < 1 {
			return int(sum), true
		}
		size *= math.Exp(ratio)
		sum += size
	}
	return 0, false
}

// mostLayers is how far it is thought ahead.
const mostLayers = 1000

// line returns the mean of values that are one apart, and the slope of the line with the least squares.
func line(values []float64) (mean, slope float64) {
	middle := float64(len(values)-1) / 2
	for _, v := range values {
		mean += v / float64(len(values))
	}
	var up, across float64
	for i, v := range values {
		x := float64(i) - middle
		up += x * (v - mean)
		across += x * x
	}
	return mean, up / across
}

// String says it in a few words, for a line of progress.
func (t *trend) String() string {
	text := fmt.Sprintf("next layer %s", reports.Thousands(t.next()))
	if left, ok := t.left(); ok {
		if left -= t.next(); left > 0 {
			text += fmt.Sprintf(", perhaps %s to go", reports.Thousands(rounded(left)))
		}
	}
	return text
}

// rounded leaves two digits of a number: of a guess there are no more.
func rounded(n int) int {
	unit := 1
	for n/unit >= 100 {
		unit *= 10
	}
	return (n + unit/2) / unit * unit
}
