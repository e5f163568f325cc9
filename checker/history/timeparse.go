package history

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/lockfault/lockfault/internal/jsonscan"
)

// A TimeUnit is what the plain numbers in the columns time and lease of a CSV
// history count. The zero value is [AutoUnit].
type TimeUnit string

// The units of time.
const (
	// AutoUnit has the first time tell. If it lies between September 2001 and
	// 2100 as seconds, milliseconds, microseconds or nanoseconds since 1970,
	// which it can in one of them at most, these are the unit. Otherwise whole
	// numbers are nanoseconds, and those with a decimal point seconds.
	AutoUnit     TimeUnit = ""
	Nanoseconds  TimeUnit = "ns"
	Microseconds TimeUnit = "us"
	Milliseconds TimeUnit = "ms"
	Seconds      TimeUnit = "s"
)

// TimeUnits returns the units that can be asked for by name.
func TimeUnits() []TimeUnit { return []TimeUnit{Nanoseconds, Microseconds, Milliseconds, Seconds} }

// length returns how long one of the unit is.
func (u TimeUnit) length() time.Duration {
	switch u {
	case Seconds:
		return time.Second
	case Milliseconds:
		return time.Millisecond
	case Microseconds:
		return time.Microsecond
	}
	return time.Nanosecond
}

// String returns the unit in words.
func (u TimeUnit) String() string {
	switch u {
	case AutoUnit:
		return "auto"
	case Seconds:
		return "seconds"
	case Milliseconds:
		return "milliseconds"
	case Microseconds:
		return "microseconds"
	}
	return "nanoseconds"
}

// Times is what a reader has found out about the times of a CSV history that are
// plain numbers. It is the zero value if there are none.
type Times struct {
	Unit TimeUnit
	// Since1970 says that they are dates. Then the events have the time since
	// the first of them.
	Since1970 bool
	// Guessed says that nobody asked for the unit: First told it.
	Guessed bool
	First   string // the first time that is not 0, as it stands there
	Line    int    // where that is
}

// A clock reads times. All in one file are written in the same way, which the
// first that is not 0 shows: 10 could be nanoseconds or seconds.
type clock struct {
	asked    TimeUnit
	notation notation
	times    Times
	start    time.Time     // of dates: the first
	origin   time.Duration // of numbers that are dates: the first
	unit     time.Duration // of numbers: the length of 1
	decimals bool          // of numbers: they may have a decimal point
}

type notation byte

const (
	notSeen notation = iota
	numbers
	dates   // of RFC 3339
	lengths // time.ParseDuration
)

// name says how the times of this file are written.
func (c *clock) name() string {
	switch c.notation {
	case dates:
		return "dates of RFC 3339"
	case lengths:
		return "durations such as 1.5s"
	}
	name := c.times.Unit.String()
	if c.times.Since1970 {
		name += " since 1970"
	}
	if !c.decimals {
		name = "whole " + name
	}
	return name
}

// The dates that numbers are taken for.
const (
	earliest = 1e9        // September 2001, in seconds since 1970
	latest   = 4102444800 // 2100
)

// since1970 reports whether a number of that unit is a likely date.
func since1970(n float64, unit TimeUnit) bool {
	s := n * unit.length().Seconds()
	return earliest <= s && s < latest
}

// first learns from the first time how all are written.
func (c *clock) first(text []byte, line int) error {
	s := string(text)
	n, err := strconv.ParseFloat(s, 64)
	if err == nil && !math.IsInf(n, 0) && !math.IsNaN(n) {
		c.number(s, n, line)
		return nil
	}
	switch {
	case strings.Contains(s, ","):
		return fmt.Errorf("%.40q is no time: write a decimal point, not a comma", text)
	case isDuration(s):
		c.notation = lengths
	case isDate(s):
		c.notation = dates
		c.start, _ = time.Parse(time.RFC3339, s)
	default:
		return fmt.Errorf("%.40q is no time: write numbers, with a decimal point if need be, dates of RFC 3339, or durations such as 1.5s", text)
	}
	if c.asked != AutoUnit {
		return badFile{fmt.Errorf("%.40q is no number of %s, which were asked for: leave the unit out, since it says so itself", text, c.asked)}
	}
	return nil
}

// number is first, of a number.
func (c *clock) number(text string, n float64, line int) {
	whole := isWhole(text)
	unit := c.asked
	if unit == AutoUnit {
		for _, candidate := range TimeUnits() {
			if since1970(n, candidate) {
				unit = candidate
			}
		}
	}
	switch {
	case unit != AutoUnit:
	case whole:
		unit = Nanoseconds
	default:
		unit = Seconds
	}
	c.notation, c.unit = numbers, unit.length()
	c.times = Times{Unit: unit, Since1970: since1970(n, unit), Guessed: c.asked == AutoUnit, First: text, Line: line}
	// 1 and then 1.5 is no file of nanoseconds: the first was taken for
	// something else than it is.
	c.decimals = unit != Nanoseconds
	if c.times.Since1970 {
		c.origin, _ = c.count([]byte(text))
	}
}

// time returns a time as a length since 0, or since the first if they are dates.
func (c *clock) time(text []byte, line int) (time.Duration, error) {
	if c.notation == numbers {
		d, ok := c.count(text)
		switch {
		case ok && c.origin == 0:
			return d, nil
		case ok && d >= 0 && d-c.origin < farthest: // the difference of two that are not negative
			return d - c.origin, nil
		}
	}
	if c.notation == notSeen {
		if string(text) == "0" { // in whatever it is written
			return 0, nil
		}
		before := *c
		err := c.first(text, line)
		d := time.Duration(0)
		if err == nil {
			d, err = c.time(text, line)
		}
		if err != nil {
			*c = before
		}
		return d, err
	}
	switch c.notation {
	case lengths:
		if d, err := time.ParseDuration(string(text)); err == nil {
			return d, nil
		}
	case dates:
		var at time.Time
		err := at.UnmarshalText(text) // allocates nothing, but is stricter
		if err != nil {
			at, err = time.Parse(time.RFC3339, string(text))
		}
		if err == nil {
			return at.Sub(c.start), nil // saturates, and what does is refused as too far
		}
	}
	hint := ""
	if n, err := strconv.ParseFloat(string(text), 64); c.notation == numbers && err == nil && !math.IsInf(n, 0) && !math.IsNaN(n) {
		hint = "; if they are something else, say their unit (lockfault check --time-unit)"
	}
	return 0, fmt.Errorf("%.40q is no time; the times of this file are %s%s", text, c.name(), hint)
}

// lease returns the end of a lease. 0 is none, in whatever times are written. An
// end at the first time, which a length of 0 would make no end at all, is put just
// before: it is over before anything happened, either way.
func (c *clock) lease(text []byte, line int) (time.Duration, error) {
	if string(text) == "0" {
		return 0, nil
	}
	d, err := c.time(text, line)
	switch {
	case err != nil:
		return 0, err
	case c.times.Since1970 && d+c.origin < earliest*time.Second:
		return 0, fmt.Errorf("the lease %.40q is no date, but the times are %s: write when it ends, not how long it is", text, c.name())
	case d == 0 && (c.times.Since1970 || c.notation == dates):
		return -1, nil
	}
	return d, nil
}

// count reads a number of units: exactly, as far as nanoseconds go, unless it
// has an exponent. A floating point number could not hold the nanoseconds of a
// date.
func (c *clock) count(text []byte) (time.Duration, bool) {
	if len(text) == 0 {
		return 0, false
	}
	if n, end := jsonscan.Number(text, 0); end == len(text) && n <= math.MaxInt64/int64(c.unit) && n >= math.MinInt64/int64(c.unit) {
		return time.Duration(n) * c.unit, true
	}
	digits, negative := strings.CutPrefix(string(text), "-")
	before, after, _ := strings.Cut(digits, ".")
	if before == "" {
		before = "0"
	}
	if !isWhole(before) || before[0] == '-' || after != "" && (!isWhole(after) || after[0] == '-') {
		return c.exponent(string(text))
	}
	if len(before)+len(after) < len(digits) && !c.decimals {
		return 0, false
	}
	n, err := strconv.ParseInt(before, 10, 64)
	if err != nil || n > math.MaxInt64/int64(c.unit) {
		return 0, false
	}
	n *= int64(c.unit)
	scale := int64(c.unit)
	for i := 0; i < len(after) && scale > 1; i++ {
		scale /= 10
		more := int64(after[i]-'0') * scale
		if n > math.MaxInt64-more {
			return 0, false
		}
		n += more
	}
	if negative {
		n = -n
	}
	return time.Duration(n), true
}

// exponent reads a number such as 1.5e9.
func (c *clock) exponent(text string) (time.Duration, bool) {
	f, err := strconv.ParseFloat(text, 64)
	if f *= float64(c.unit); err != nil || !c.decimals || math.IsNaN(f) || math.Abs(f) > float64(farthest) {
		return 0, false
	}
	return time.Duration(math.Round(f)), true
}

// isWhole reports whether the text is a whole number of decimal digits.
func isWhole(text string) bool {
	digits := strings.TrimPrefix(text, "-")
	for _, c := range digits {
		if c < '0' || c > '9' {
			return false
		}
	}
	return digits != ""
}

func isDuration(text string) bool {
	_, err := time.ParseDuration(text)
	return err == nil
}

func isDate(text string) bool {
	_, err := time.Parse(time.RFC3339, text)
	return err == nil
}
