package faults

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// Rate is a number of bytes per second or per TTL. The zero value is unlimited.
type Rate struct {
	Bytes int64
	Per   Span // one second or one TTL
}

// PerSecond returns the rate in bytes per second for a lock with the given TTL; 0 if the rate is
// unlimited.
func (r Rate) PerSecond(ttl time.Duration) float64 {
	if r == (Rate{}) {
		return 0
	}
	return float64(r.Bytes) / r.Per.Of(ttl).Seconds()
}

// kilobyte is 1000 bytes, as in toxiproxy.
const kilobyte = 1000

// String returns the rate as scripts write it, such as "200B/ttl", "2KB/s" or "unlimited".
// [ParseRate] parses the result.
func (r Rate) String() string {
	if r == (Rate{}) {
		return "unlimited"
	}
	number, unit, per := r.Bytes, "B", "s"
	if number%kilobyte == 0 {
		number, unit = number/kilobyte, "KB"
	}
	if r.Per.TTLs != 0 {
		per = "ttl"
	}
	return strconv.FormatInt(number, 10) + unit + "/" + per
}

// ParseRate parses a rate: a positive whole number of B or KB (1000 B) per second or TTL
// ("200B/ttl", "2KB/s"), or "unlimited".
func ParseRate(text string) (Rate, error) {
	if text == "unlimited" {
		return Rate{}, nil
	}
	amount, per, _ := strings.Cut(text, "/")
	r := Rate{Per: Span{Abs: time.Second}}
	if per == "ttl" {
		r.Per = Span{TTLs: 1}
	}
	digits, unit := amount, int64(1)
	if kilo, ok := strings.CutSuffix(amount, "KB"); ok {
		digits, unit = kilo, kilobyte
	} else {
		digits, _ = strings.CutSuffix(amount, "B")
	}
	number, err := strconv.ParseUint(digits, 10, 63)
	if err != nil || digits == amount || per != "s" && per != "ttl" || number == 0 || number > uint64(math.MaxInt64/unit) {
		return Rate{}, fmt.Errorf("%q is not a number of bytes per second or TTL such as 200B/ttl or 2KB/s", text)
	}
	r.Bytes = int64(number) * unit
	return r, nil
}
