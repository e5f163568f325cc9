package faults

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Span is a length of time in a script: absolute, or in units of the lock's TTL so that one script
// works for every TTL. At most one field is non-zero. The zero value is a span of length 0.
type Span struct {
	TTLs float64       // in TTLs
	Abs  time.Duration // absolute
}

// Of returns the span as a duration for a lock with the given TTL.
func (s Span) Of(ttl time.Duration) time.Duration {
	return s.Abs + time.Duration(s.TTLs*float64(ttl))
}

// IsZero reports whether the span is the zero value.
func (s Span) IsZero() bool { return s == Span{} }

// String returns the span as scripts write it, such as "1.1ttl" or "30s". [ParseSpan] parses the
// result.
func (s Span) String() string {
	if s.TTLs != 0 {
		return strconv.FormatFloat(s.TTLs, 'f', -1, 64) + "ttl"
	}
	text := s.Abs.String()
	// Duration prints a minute as "1m0s" and an hour as "1h0m0s".
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}

// ParseSpan parses a span: a Go duration ("30s", "-1m30s") or a number of TTLs from -1e6 to 1e6
// ("1.1ttl", "+2ttl").
func ParseSpan(text string) (Span, error) {
	if number, ok := strings.CutSuffix(text, "ttl"); ok {
		ttls, err := strconv.ParseFloat(number, 64)
		if err != nil || ttls != ttls || ttls > 1e6 || ttls < -1e6 {
			return Span{}, fmt.Errorf("%q is not a number of TTLs such as 1.1ttl", text)
		}
		return Span{TTLs: ttls}, nil
	}
	abs, err := time.ParseDuration(text)
	if err != nil {
		return Span{}, fmt.Errorf("%q is not a length of time such as 30s, 200ms or 1.1ttl", text)
	}
	return Span{Abs: abs}, nil
}
