package history

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/lockfault/lockfault/internal/jsonscan"
)

// A TimeUnit is the unit of plain numbers in the columns time and lease of a CSV history. The zero
// value is [AutoUnit].
type TimeUnit string

// The units of time.
const (
	// AutoUnit detects the unit from the first time that is not 0. If the time is a date between
	// September 2001 and 2100 in seconds, milliseconds, microseconds or nanoseconds since 1970 (at
	// most one of them fits), that is the unit. Otherwise whole numbers are nanoseconds, and
	// numbers with a decimal point are seconds.
	AutoUnit     TimeUnit = ""
	Nanoseconds  TimeUnit = "ns"
	Microseconds TimeUnit = "us"
	Milliseconds TimeUnit = "ms"
	Seconds      TimeUnit = "s"
)

// TimeUnits returns the units that can be selected by name.
func TimeUnits() []TimeUnit { return []TimeUnit{Nanoseconds, Microseconds, Milliseconds, Seconds} }

// unit is the name and the length of a unit.
type unit struct {
	name   string
	length time.Duration
}

// unit returns the unit; nanoseconds for an unknown one.
func (u TimeUnit) unit() unit {
	switch u {
	case AutoUnit:
		return unit{"auto", time.Nanosecond}
	case Seconds:
		return unit{"seconds", time.Second}
	case Milliseconds:
		return unit{"milliseconds", time.Millisecond}
	case Microseconds:
		return unit{"microseconds", time.Microsecond}
	}
	return unit{"nanoseconds", time.Nanosecond}
}

// String returns the name of the unit.
func (u TimeUnit) String() string { return u.unit().name }

// Times describes the plain numbers in the times of a CSV history. The zero value means that the
// history has no such times.
type Times struct {
	Unit TimeUnit
	// Since1970 reports that the times are dates. Events then have the time since the first date.
	Since1970 bool
	// Guessed reports that the unit was not requested but detected from First.
	Guessed bool
	First   string // the first time that is not 0, as written in the file
	Line    int    // the line of First
}

// A clock parses times. All times of a file have the same notation, which the first time that is
// not 0 determines: 10 alone could be nanoseconds or seconds.
type clock struct {
	asked    TimeUnit
	notation notation
	times    Times
	start    time.Time     // for dates: the first
	origin   time.Duration // for numbers that are dates: the first
	unit     time.Duration // for numbers: the duration of 1
	decimals bool          // for numbers: they may have a decimal point
}

type notation byte

const (
	notSeen notation = iota
	numbers
	dates   // RFC 3339
	lengths // time.ParseDuration
)

// name returns the notation of the times of this file, for messages.
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

// The range of numbers that are taken for dates.
const (
	earliest = 1e9        // September 2001, in seconds since 1970
	latest   = 4102444800 // 2100
)

// since1970 reports whether n, in the given unit since 1970, is a plausible date.
func since1970(n float64, unit TimeUnit) bool {
	s := n * unit.unit().length.Seconds()
	return earliest <= s && s < latest
}

// first determines the notation of all times from the first one.
func (c *clock) first(text []byte, line int) error {
	s := string(text)
	n, err := strconv.ParseFloat(s, 64)
	if err == nil && !math.IsInf(n, 0) && !math.IsNaN(n) {
		c.noteNumber(s, n, line)
		return nil
	}
	_, noLength := time.ParseDuration(s)
	date, noDate := time.Parse(time.RFC3339, s)
	switch {
	case strings.Contains(s, ","):
		return fmt.Errorf("%.40q is no time: write a decimal point, not a comma", text)
	case noLength == nil:
		c.notation = lengths
	case noDate == nil:
		c.notation, c.start = dates, date
	default:
		return fmt.Errorf("%.40q is no time: write numbers, with a decimal point if need be, dates of RFC 3339, or durations such as 1.5s", text)
	}
	if c.asked != AutoUnit {
		return badFile{fmt.Errorf("%.40q is no number of %s, which were asked for: leave the unit out, since it says so itself", text, c.asked)}
	}
	return nil
}

// noteNumber is the part of first for numbers.
func (c *clock) noteNumber(text string, n float64, line int) {
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
	c.notation, c.unit = numbers, unit.unit().length
	c.times = Times{Unit: unit, Since1970: since1970(n, unit), Guessed: c.asked == AutoUnit, First: text, Line: line}
	// A file with 1 and then 1.5 cannot count nanoseconds: the unit detected from the first time is
	// wrong, so times with decimals are refused.
	c.decimals = unit != Nanoseconds
	if c.times.Since1970 {
		c.origin, _ = c.count([]byte(text))
	}
}

// time parses a time and returns the duration since 0, or since the first time for dates.
func (c *clock) time(text []byte, line int) (time.Duration, error) {
	if c.notation == numbers {
		d, ok := c.count(text)
		switch {
		case ok && c.origin == 0:
			return d, nil
		case ok && d >= 0 && d-c.origin < farthest: // a difference of two values >= 0
			return d - c.origin, nil
		}
	}
	if c.notation == notSeen {
		if string(text) == "0" { // 0 is valid in every notation
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
			return at.Sub(c.start), nil // Sub saturates; a saturated result is refused as too far
		}
	}
	hint := ""
	if n, err := strconv.ParseFloat(string(text), 64); c.notation == numbers && err == nil && !math.IsInf(n, 0) && !math.IsNaN(n) {
		hint = "; if they are something else, say their unit (lockfault check --time-unit)"
	}
	return 0, fmt.Errorf("%.40q is no time; the times of this file are %s%s", text, c.name(), hint)
}

// lease parses the end of a lease. 0 means none in every notation. An end equal to the first time
// would be the duration 0, which means none; lease returns -1 for it instead: the lease is over
// before the first event in both cases.
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

// count parses a number of units exactly, to the nanosecond, unless it has an exponent. A
// floating-point number could not hold the nanoseconds of a date.
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

// exponent parses a number such as 1.5e9.
func (c *clock) exponent(text string) (time.Duration, bool) {
	f, err := strconv.ParseFloat(text, 64)
	if f *= float64(c.unit); err != nil || !c.decimals || math.IsNaN(f) || math.Abs(f) > float64(farthest) {
		return 0, false
	}
	return time.Duration(math.Round(f)), true
}

// isWhole reports whether the text consists of decimal digits, with an optional minus sign.
func isWhole(text string) bool {
	digits := strings.TrimPrefix(text, "-")
	for _, c := range digits {
		if c < '0' || c > '9' {
			return false
		}
	}
	return digits != ""
}
