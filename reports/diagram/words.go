package diagram

import (
	"strings"
	"time"
)

// Words says a length of time with three digits at most, which is as much as anybody
// compares: 30 s, 109 ms, 1.52 ms, 475 µs.
func Words(d time.Duration) string {
	unit, name := time.Duration(1), " ns"
	switch {
	case d >= time.Second:
		unit, name = time.Second, " s"
	case d >= time.Millisecond:
		unit, name = time.Millisecond, " ms"
	case d >= time.Microsecond:
		unit, name = time.Microsecond, " µs"
	}
	return Digits(float64(d)/float64(unit), 3) + name
}

// Digits writes a number with so many digits, of those behind the point only what is not
// zero.
func Digits(x float64, n int) string {
	behind := n
	for rest := x; rest >= 1 && behind > 0; rest /= 10 {
		behind--
	}
	return trimZeros(fixed(x, behind))
}

func trimZeros(text string) string {
	if !strings.Contains(text, ".") {
		return text
	}
	return strings.TrimRight(strings.TrimRight(text, "0"), ".")
}
