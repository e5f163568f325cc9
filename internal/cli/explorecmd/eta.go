package explorecmd

import (
	"fmt"
	"math"
	"time"

	"github.com/lockfault/lockfault/internal/cli/kit"
	"github.com/lockfault/lockfault/internal/explore"
	"github.com/lockfault/lockfault/reports"
)

// trend estimates how many states remain in a search, from the number of states in each layer (all
// paths of one length).
//
// The ratio of a layer to the previous layer falls from layer to layer, and its logarithm falls
// almost linearly. While layers still grow, the extrapolation is unusable: it was wrong by a factor
// of ten and more. After layers have begun to shrink, it was within a factor of 2.5 in each of four
// measured searches, until a twentieth of their states was left. For this reason trend gives no
// estimate before.
type trend struct {
	sizes  []int // states of each complete layer
	depth  int
	before int // number of states when the current layer began
	states int
}

// add records an intermediate result of the search.
func (t *trend) add(r explore.Result) {
	if r.Depth > t.depth {
		if t.depth > 0 {
			t.sizes = append(t.sizes, t.states-t.before)
		}
		t.depth, t.before = r.Depth, t.states
	}
	t.states = r.States
}

// next returns the number of new states in the current layer. They are the beginning of the next
// layer.
func (t *trend) next() int { return t.states - t.before }

// Bounds of the number of ratios that the line is fitted to.
const (
	mostRatios  = 8
	leastRatios = 4
)

// left returns an estimate of the states that remain after the last complete layer, or false if no
// estimate is possible.
func (t *trend) left() (int, bool) {
	n := len(t.sizes)
	if n <= leastRatios || t.sizes[n-1] >= t.sizes[n-2] {
		return 0, false
	}
	var ratios []float64 // logarithms of the ratios
	for i := max(1, n-mostRatios); i < n; i++ {
		if t.sizes[i-1] < 1 || t.sizes[i] < 1 {
			return 0, false
		}
		ratios = append(ratios, math.Log(float64(t.sizes[i])/float64(t.sizes[i-1])))
	}
	mean, slope := line(ratios)
	ratio := mean + slope*float64(len(ratios)-1)/2 // the value of the line at the last ratio
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

// mostLayers is the largest number of layers that are extrapolated.
const mostLayers = 1000

// line returns the mean of equidistant values and the slope of their least-squares line.
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

// String returns a short text for a progress line.
func (t *trend) String() string {
	text := fmt.Sprintf("next layer %s", reports.Thousands(t.next()))
	if left, ok := t.left(); ok {
		if left -= t.next(); left > 0 {
			text += fmt.Sprintf(", perhaps %s to go", reports.Thousands(rounded(left)))
		}
	}
	return text
}

// rounded rounds n to two significant digits, because an estimate has no more.
func rounded(n int) int {
	unit := 1
	for n/unit >= 100 {
		unit *= 10
	}
	return (n + unit/2) / unit * unit
}

// searchProgress reports how far a search is.
type searchProgress struct {
	*kit.Progress
	trend trend
}

// searched prints the progress of a search.
func (p *searchProgress) searched(r explore.Result, took time.Duration) {
	p.trend.add(r)
	if p.Due() {
		p.Say(fmt.Sprintf("depth %d, %s states, %s/s, %s, %v", r.Depth, reports.Thousands(r.States),
			reports.Thousands(int(float64(r.States)/took.Seconds())), kit.Count(len(r.Findings), "finding", "findings"), &p.trend))
	}
}
