package diagram

import (
	"slices"
	"sort"
	"strconv"
	"time"
)

// A Scale says how a piece of the axis is drawn.
type Scale int

// The scales.
const (
	ToLease   Scale = iota // to the scale of the lease, the same in the whole picture
	Magnified              // to one scale that tells events apart, the same in the whole picture, but that a step has a least width
	Folded                 // not to scale: nothing happened for longer than would fit
)

// A Segment is the time between two events on the axis.
type Segment struct {
	From, To time.Duration
	X, Width float64
	Scale    Scale
}

// Length is how long the piece is.
func (s Segment) Length() time.Duration { return s.To - s.From }

// An Axis leads from times to places. It has two scales, for a lease of half a minute and
// commands that take half a millisecond fit no single one: what happens in quick succession is
// magnified, the idle time in between is drawn to the scale of the lease, and what is too
// long for that is folded. Steps that would be too short to be seen even so are widened.
type Axis struct {
	Segments []Segment
	// LeaseWidth is how long a lease is where the scale is that of the lease.
	LeaseWidth float64
	// Times is by how much the magnified pieces are.
	Times float64
	// Digits is how many digits behind the point tell the times apart that the axis was
	// made for.
	Digits int
}

// What an axis looks like, in units of which 1000 are about a page's width.
const (
	leaseWidth   = 300.0  // of a lease, if there is room
	leastLease   = 90.0   // of a lease
	mostIdle     = 700.0  // of all that is drawn to the lease's scale
	visible      = 9.0    // from here on a length is seen at the lease's scale
	step         = 15.0   // between two events that are as far apart as most
	mostStep     = 70.0   // what would be longer is folded
	leastStep    = 7.0    // between any two, so that they can be told apart
	foldedWidth  = 34.0   // of a fold
	foldedLeases = 1.5    // how many leases without an event are folded
	leastAxis    = 900.0  // of the whole, as far as stretching helps
	mostStretch  = 2.5    // of all widths alike
	margin       = 8.0    // before the first and behind the last
	mostClose    = 2200.0 // of all that is magnified
)

// NewAxis makes the axis for the times at which something is to be seen.
func NewAxis(lease time.Duration, times []time.Duration) Axis {
	times = slices.Compact(slices.Sorted(slices.Values(times)))
	if len(times) == 0 {
		return Axis{Digits: 3}
	}
	a := Axis{LeaseWidth: leaseWidth, Digits: digitsFor(times)}
	gaps := make([]time.Duration, len(times)-1)
	for i := range gaps {
		gaps[i] = times[i+1] - times[i]
	}
	if lease <= 0 { // nobody knows it: the whole takes its place
		lease = max(1, times[len(times)-1]-times[0])
	}
	idle := 0.0
	for _, gap := range gaps {
		if w := leaseWidth * inLeases(gap, lease); w >= visible && inLeases(gap, lease) <= foldedLeases {
			idle += w
		}
	}
	if idle > mostIdle {
		a.LeaseWidth = max(leastLease, leaseWidth*mostIdle/idle)
	}
	unit := magnification(gaps, lease, a.LeaseWidth)
	a.Times = unit / (a.LeaseWidth / float64(lease))
	// A short story need not be a small one.
	type drawn struct {
		scale Scale
		width float64
	}
	widths := make([]drawn, len(gaps))
	natural := 2 * margin
	for i, gap := range gaps {
		widths[i].scale, widths[i].width = a.scaleOf(gap, lease, unit)
		natural += widths[i].width
	}
	stretch := min(mostStretch, max(1, leastAxis/natural))
	a.LeaseWidth *= stretch
	x := margin
	for i := range gaps {
		scale, width := widths[i].scale, widths[i].width*stretch
		a.Segments = append(a.Segments, Segment{times[i], times[i+1], x, width, scale})
		x += width
	}
	if len(gaps) == 0 {
		a.Segments = []Segment{{times[0], times[0], margin, step, Magnified}}
	}
	return a
}

func inLeases(d, lease time.Duration) float64 { return float64(d) / float64(lease) }

// scaleOf says how the time between two events is drawn.
func (a Axis) scaleOf(gap, lease time.Duration, unit float64) (Scale, float64) {
	if w := a.LeaseWidth * inLeases(gap, lease); w >= visible {
		if inLeases(gap, lease) > foldedLeases {
			return Folded, foldedWidth
		}
		return ToLease, w
	}
	w := float64(gap) * unit
	if w > mostStep {
		return Folded, foldedWidth
	}
	return Magnified, max(w, leastStep)
}

// magnification returns how wide a nanosecond is in the magnified pieces: such that half of
// the steps there are at least as long as a step should be.
func magnification(gaps []time.Duration, lease time.Duration, leaseWidth float64) float64 {
	var short []time.Duration
	for _, gap := range gaps {
		if leaseWidth*inLeases(gap, lease) < visible {
			short = append(short, gap)
		}
	}
	if len(short) == 0 {
		return leaseWidth / float64(lease)
	}
	slices.Sort(short)
	unit := step / float64(max(1, short[len(short)/2]))
	if all := step * float64(len(short)); all > mostClose {
		unit *= mostClose / all
	}
	return unit
}

// Pieces returns the segments, neighbours of one scale joined.
func (a Axis) Pieces() []Segment {
	var list []Segment
	for _, s := range a.Segments {
		if n := len(list); n > 0 && list[n-1].Scale == s.Scale && s.Scale != Folded {
			list[n-1].To = s.To
			list[n-1].Width += s.Width
			continue
		}
		list = append(list, s)
	}
	return list
}

// X returns the place of a time. What lies outside of the axis lies at its end.
func (a Axis) X(t time.Duration) float64 {
	n := len(a.Segments)
	if n == 0 {
		return margin
	}
	i := sort.Search(n, func(i int) bool { return a.Segments[i].To >= t })
	if i == n {
		last := a.Segments[n-1]
		return last.X + last.Width
	}
	s := a.Segments[i]
	if t <= s.From {
		return s.X
	}
	return s.X + s.Width*float64(t-s.From)/float64(s.To-s.From)
}

// Ends returns the first time and the last.
func (a Axis) Ends() (from, to time.Duration) {
	if len(a.Segments) == 0 {
		return 0, 0
	}
	return a.Segments[0].From, a.Segments[len(a.Segments)-1].To
}

// Width returns how wide the whole is.
func (a Axis) Width() float64 {
	if len(a.Segments) == 0 {
		return 2 * margin
	}
	last := a.Segments[len(a.Segments)-1]
	return last.X + last.Width + margin
}

// Seconds says a time with as many digits as tell the axis's times apart.
func (a Axis) Seconds(t time.Duration) string { return fixed(t.Seconds(), a.Digits) }

func fixed(x float64, digits int) string { return strconv.FormatFloat(x, 'f', digits, 64) }

// digitsFor returns how many digits of seconds tell the times apart: three at least, and
// six at most, unless it takes more to tell the first from the last.
func digitsFor(times []time.Duration) int {
	for digits := 3; digits < 6; digits++ {
		last, same := "", false
		for _, t := range times {
			text := fixed(t.Seconds(), digits)
			same = same || text == last
			last = text
		}
		if !same {
			return digits
		}
	}
	digits, first, last := 6, times[0].Seconds(), times[len(times)-1].Seconds()
	for digits < 9 && first != last && fixed(first, digits) == fixed(last, digits) {
		digits++
	}
	return digits
}
