package diagram

import (
	"slices"
	"sort"
	"strconv"
	"time"
)

// A Scale is the way in which a segment of the axis is drawn.
type Scale int

// The scales.
const (
	ToLease   Scale = iota // to the scale of the lease, the same in the whole picture
	Magnified              // to one larger scale, with a smallest width for each step
	Folded                 // not to scale: a long time without events
)

// A Segment is the time between two events on the axis.
type Segment struct {
	From, To time.Duration
	X, Width float64
	Scale    Scale
}

// Length returns the duration of the segment.
func (s Segment) Length() time.Duration { return s.To - s.From }

// An Axis maps times to positions. An Axis has two scales, since a lease of 30 s and commands of
// 0.5 ms do not fit a single one. Events in quick succession are magnified, idle times between them
// are drawn to the scale of the lease, and longer idle times are folded. Steps that would be too
// narrow even so are widened.
type Axis struct {
	Segments []Segment
	// LeaseWidth is the width of a lease at the scale of the lease.
	LeaseWidth float64
	// Times is the magnification of the [Magnified] segments, relative to the scale of the lease.
	Times float64
	// Digits is the number of decimal places that distinguishes the times of the axis.
	Digits int
}

// Dimensions of an axis. A page is about 1000 units wide.
const (
	leaseWidth   = 300.0  // width of a lease, if there is room
	leastLease   = 90.0   // smallest width of a lease
	mostIdle     = 700.0  // largest width of all segments at the lease's scale
	visible      = 9.0    // smallest width of a segment at the lease's scale
	step         = 15.0   // width of a median magnified step
	mostStep     = 70.0   // wider magnified steps are folded
	leastStep    = 7.0    // smallest width of a step, so that events are distinct
	foldedWidth  = 34.0   // width of a folded segment
	foldedLeases = 1.5    // longer times without events, in leases, are folded
	leastAxis    = 900.0  // smallest width of the axis, as far as stretching helps
	mostStretch  = 2.5    // largest factor by which all widths are stretched
	margin       = 8.0    // before the first time and after the last
	mostClose    = 2200.0 // largest width of all magnified segments, roughly
)

// NewAxis returns an axis for the times at which a picture shows something. The times may be
// unsorted. If the lease is unknown (0), the whole period takes its place.
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
	if lease <= 0 { // unknown: use the whole period
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
	// Stretch the axis of a short story.
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

// scaleOf returns the scale and the width of the time between two events.
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

// magnification returns the width of a nanosecond in the magnified segments. magnification makes
// half of their steps at least as wide as step, unless all of them together would be too wide.
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

// Pieces returns the segments with neighbours of the same scale joined, except folded ones.
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

// X returns the position of a time. A time outside the axis maps to the nearer end.
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

// Ends returns the first and the last time of the axis.
func (a Axis) Ends() (from, to time.Duration) {
	if len(a.Segments) == 0 {
		return 0, 0
	}
	return a.Segments[0].From, a.Segments[len(a.Segments)-1].To
}

// Width returns the width of the whole axis with its margins.
func (a Axis) Width() float64 {
	if len(a.Segments) == 0 {
		return 2 * margin
	}
	last := a.Segments[len(a.Segments)-1]
	return last.X + last.Width + margin
}

// Seconds formats a time in seconds with the decimal places of the axis.
func (a Axis) Seconds(t time.Duration) string { return fixed(t.Seconds(), a.Digits) }

func fixed(x float64, digits int) string { return strconv.FormatFloat(x, 'f', digits, 64) }

// digitsFor returns the number of decimal places of seconds that distinguishes the times: from 3 to
// 6, or up to 9 if the first and the last time need more.
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
