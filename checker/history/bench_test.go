package history_test

import (
	"bytes"
	"flag"
	"io"
	"syscall"
	"testing"
	"time"

	"github.com/lockfault/lockfault/checker/history"
	"github.com/lockfault/lockfault/checker/linear"
)

var operations = flag.Int("operations", 100_000, "how many operations the histories of the benchmarks have")

// readAll reads a history, gives each event to a function,
// and returns how many there were.
func readAll(tb testing.TB, in io.Reader, format history.Format, each func(linear.Event) error) int {
	n := 0
	for e, err := range history.New(in, history.Options{Format: format}).Events() {
		if err == nil {
			err = each(e)
		}
		if err != nil {
			tb.Fatal(err)
		}
		n++
	}
	return n
}

// A meter counts the time that this process had a core, so that what else runs on
// the machine slows the numbers down less.
type meter struct{ begun time.Duration }

func startMeter() meter { return meter{cpuTime()} }

// report reports events and operations, of which each has two, a second.
func (m meter) report(b *testing.B, events int) {
	rate := float64(events) * float64(b.N) / (cpuTime() - m.begun).Seconds()
	b.ReportMetric(rate, "events/s")
	b.ReportMetric(rate/2, "operations/s")
	b.ReportMetric(0, "ns/op") // of a whole history says nothing
}

func cpuTime() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		panic(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// BenchmarkRead reads histories that lie in memory, on one core, and does nothing
// with them.
//
//	GOMAXPROCS=1 go test ./checker/history -run '^$' -bench Read -benchmem -operations 1000000
func BenchmarkRead(b *testing.B) {
	for _, s := range shapes() {
		b.Run(s.name, func(b *testing.B) {
			text, err := io.ReadAll(s.stream(*operations, 10, 1))
			if err != nil {
				b.Fatal(err)
			}
			b.SetBytes(int64(len(text)))
			b.ReportAllocs()
			m := startMeter()
			for b.Loop() {
				if n := readAll(b, bytes.NewReader(text), s.format, func(linear.Event) error { return nil }); n != 2**operations {
					b.Fatalf("%d events", n)
				}
			}
			m.report(b, 2**operations)
		})
	}
}

// BenchmarkCheck judges them, too.
func BenchmarkCheck(b *testing.B) {
	for _, s := range shapes() {
		b.Run(s.name, func(b *testing.B) {
			text, err := io.ReadAll(s.stream(*operations, 10, 1))
			if err != nil {
				b.Fatal(err)
			}
			b.SetBytes(int64(len(text)))
			b.ReportAllocs()
			m := startMeter()
			for b.Loop() {
				checker := linear.New(linear.Mutex(), linear.Options{})
				readAll(b, bytes.NewReader(text), s.format, checker.Add)
				if r := checker.Result(); r.Verdict != linear.Valid || r.Ops != *operations {
					b.Fatalf("%s, %d operations", r.Verdict, r.Ops)
				}
			}
			m.report(b, 2**operations)
		})
	}
}
