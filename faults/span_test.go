package faults_test

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/lockfault/lockfault/faults"
)

func TestSpan(t *testing.T) {
	for _, c := range []struct {
		in   string
		want faults.Span
		text string // how it is written back
		of   time.Duration
	}{
		{"30s", faults.Span{Abs: 30 * time.Second}, "30s", 30 * time.Second},
		{"200ms", faults.Span{Abs: 200 * time.Millisecond}, "200ms", 200 * time.Millisecond},
		{"1m", faults.Span{Abs: time.Minute}, "1m", time.Minute},
		{"60s", faults.Span{Abs: time.Minute}, "1m", time.Minute},
		{"1h", faults.Span{Abs: time.Hour}, "1h", time.Hour},
		{"1h30m", faults.Span{Abs: 90 * time.Minute}, "1h30m", 90 * time.Minute},
		{"1h0m5s", faults.Span{Abs: time.Hour + 5*time.Second}, "1h0m5s", time.Hour + 5*time.Second},
		{"10m", faults.Span{Abs: 10 * time.Minute}, "10m", 10 * time.Minute},
		{"-1m30s", faults.Span{Abs: -90 * time.Second}, "-1m30s", -90 * time.Second},
		{"-1h", faults.Span{Abs: -time.Hour}, "-1h", -time.Hour},
		{"0s", faults.Span{}, "0s", 0},
		{"0", faults.Span{}, "0s", 0},
		{"1.1ttl", faults.Span{TTLs: 1.1}, "1.1ttl", 11 * time.Second},
		{"+2ttl", faults.Span{TTLs: 2}, "2ttl", 20 * time.Second},
		{"-0.5ttl", faults.Span{TTLs: -0.5}, "-0.5ttl", -5 * time.Second},
		{"0ttl", faults.Span{}, "0s", 0},
		{"1e6ttl", faults.Span{TTLs: 1e6}, "1000000ttl", 1e7 * time.Second},
	} {
		got, err := faults.ParseSpan(c.in)
		if err != nil || got != c.want {
			t.Errorf("ParseSpan(%q) = %+v, %v; want %+v", c.in, got, err, c.want)
		}
		if got.String() != c.text || got.Of(10*time.Second) != c.of || got.IsZero() != (c.of == 0) {
			t.Errorf("ParseSpan(%q) reads %s, lasts %v, IsZero %t; want %s, %v", c.in, got, got.Of(10*time.Second), got.IsZero(), c.text, c.of)
		}
	}
}

func TestParseSpanRefuses(t *testing.T) {
	for _, in := range []string{"", "30", "s", "ttl", "1 ttl", "NaNttl", "Infttl", "-Infttl", "1e7ttl", "-1e7ttl", "1ttls", "1TTL", "0x1gttl", "five seconds"} {
		if got, err := faults.ParseSpan(in); err == nil {
			t.Errorf("ParseSpan(%q) = %+v; want an error", in, got)
		}
	}
}

func TestSpanRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		span := rapid.OneOf(
			rapid.Custom(func(t *rapid.T) faults.Span {
				return faults.Span{Abs: time.Duration(rapid.Int64().Draw(t, "abs"))}
			}),
			rapid.Custom(func(t *rapid.T) faults.Span {
				whole := rapid.Int64Range(-10_000, 10_000).Draw(t, "whole")
				return faults.Span{Abs: time.Duration(whole) * rapid.SampledFrom([]time.Duration{time.Millisecond, time.Second, time.Minute, time.Hour}).Draw(t, "unit")}
			}),
			rapid.Custom(func(t *rapid.T) faults.Span {
				return faults.Span{TTLs: rapid.Float64Range(-1e6, 1e6).Draw(t, "ttls")}
			}),
		).Draw(t, "span")
		if got, err := faults.ParseSpan(span.String()); err != nil || got != span {
			t.Fatalf("%+v is written %s and read %+v, %v", span, span, got, err)
		}
	})
}

func FuzzParseSpan(f *testing.F) {
	for _, seed := range []string{"30s", "-1m30s", "1.1ttl", "+2ttl", "1h0m", "nonsense"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		span, err := faults.ParseSpan(text)
		if err != nil {
			return
		}
		if again, err := faults.ParseSpan(span.String()); err != nil || again != span {
			t.Errorf("%q is read %+v, written %s and read %+v, %v", text, span, span, again, err)
		}
	})
}
