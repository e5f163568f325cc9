package diagram

import (
	"strings"
	"time"
)

// Words formats a duration with at most 3 significant digits: 30 s, 109 ms, 1.52 ms, 475 µs.
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

// Digits formats a number with n digits, without trailing zeros after the decimal point. Digits
// before the point are never cut.
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
