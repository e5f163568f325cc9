package faults_test

import (
	"testing"
	"time"

	"github.com/lockfault/lockfault/faults"
)

func TestRate(t *testing.T) {
	second, ttl := faults.Span{Abs: time.Second}, faults.Span{TTLs: 1}
	for _, c := range []struct {
		in        string
		want      faults.Rate
		text      string // how it is written back
		perSecond float64
	}{
		{"200B/ttl", faults.Rate{Bytes: 200, Per: ttl}, "200B/ttl", 20},
		{"200B/s", faults.Rate{Bytes: 200, Per: second}, "200B/s", 200},
		{"2KB/s", faults.Rate{Bytes: 2000, Per: second}, "2KB/s", 2000},
		{"2000B/ttl", faults.Rate{Bytes: 2000, Per: ttl}, "2KB/ttl", 200},
		{"2001B/s", faults.Rate{Bytes: 2001, Per: second}, "2001B/s", 2001},
		{"007B/s", faults.Rate{Bytes: 7, Per: second}, "7B/s", 7},
		{"unlimited", faults.Rate{}, "unlimited", 0},
	} {
		got, err := faults.ParseRate(c.in)
		if err != nil || got != c.want {
			t.Errorf("ParseRate(%q) = %+v, %v; want %+v", c.in, got, err, c.want)
		}
		if got.String() != c.text || got.PerSecond(10*time.Second) != c.perSecond {
			t.Errorf("ParseRate(%q) reads %s, %v a second; want %s, %v", c.in, got, got.PerSecond(10*time.Second), c.text, c.perSecond)
		}
	}
}

func TestParseRateRefuses(t *testing.T) {
	for _, in := range []string{
		"", "200", "200B", "200/s", "B/s", "KB/s", "/s", "200B/", "200B/m", "200B/2ttl", "-1B/s", "+1B/s", "1.5KB/s", "0B/s", "1 B/s",
		"1b/s", "1kB/s", "1MB/s", "1BB/s", "9223372036854775808B/s", "9223372036854775807KB/s", "unlimited/s", "1B/s/s",
	} {
		if got, err := faults.ParseRate(in); err == nil {
			t.Errorf("ParseRate(%q) = %+v; want an error", in, got)
		}
	}
}

func FuzzParseRate(f *testing.F) {
	for _, seed := range []string{"200B/ttl", "2KB/s", "1000B/s", "unlimited", "9223372036854775807B/ttl", "0B/s", "nonsense"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		rate, err := faults.ParseRate(text)
		if err != nil {
			return
		}
		if again, err := faults.ParseRate(rate.String()); err != nil || again != rate {
			t.Errorf("%q is read %+v, written %s and read %+v, %v", text, rate, rate, again, err)
		}
	})
}
