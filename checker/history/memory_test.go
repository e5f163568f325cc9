package history_test

import (
	"fmt"
	"runtime/debug"
	"runtime/metrics"
	"slices"
	"testing"

	"github.com/lockfault/lockfault/checker/history"
	"github.com/lockfault/lockfault/checker/linear"
)

// A peak is the most memory that was in use when it was looked at, in bytes.
type peak struct{ heap, all uint64 }

func (p *peak) look() {
	now := []metrics.Sample{
		{Name: "/memory/classes/heap/objects:bytes"}, // with what is garbage and not collected yet
		{Name: "/memory/classes/total:bytes"},
		{Name: "/memory/classes/heap/released:bytes"},
	}
	metrics.Read(now)
	p.heap = max(p.heap, now[0].Value.Uint64())
	p.all = max(p.all, now[1].Value.Uint64()-now[2].Value.Uint64())
}

// watch looks every so many events.
func watch(tb testing.TB, s shape, operations, clients, locks int, each func(linear.Event) error) peak {
	debug.FreeOSMemory()
	var p peak
	n := 0
	events := readAll(tb, s.stream(operations, clients, locks), s.format, func(e linear.Event) error {
		if n++; n%8192 == 0 {
			p.look()
		}
		return each(e)
	})
	if events != 2*operations {
		tb.Fatalf("%d events", events)
	}
	return p
}

// BenchmarkMemory reads histories that are written on the fly, of one lock and of
// as many as there are operations, but a million at most, and reports the most
// memory in use: first of the reader alone, then with a checker behind it.
//
//	GOMAXPROCS=1 go test ./checker/history -run '^$' -bench Memory -benchtime 1x -operations 10000000
func BenchmarkMemory(b *testing.B) {
	for _, s := range named() {
		for _, locks := range []int{1, min(1_000_000, *operations)} {
			for _, judged := range []bool{false, true} {
				b.Run(fmt.Sprintf("%s/locks=%d/judged=%v", s.name, locks, judged), func(b *testing.B) {
					var p peak
					for b.Loop() {
						each := func(linear.Event) error { return nil }
						var checker *linear.Checker
						if judged {
							checker = linear.New(linear.Mutex(), linear.Options{})
							each = checker.Add
						}
						p = watch(b, s, *operations, 10, locks, each)
						if judged && checker.Result().Verdict != linear.Valid {
							b.Fatal(checker.Result())
						}
					}
					b.ReportMetric(float64(p.heap)/1e6, "heap-MB")
					b.ReportMetric(float64(p.all)/1e6, "all-MB")
				})
			}
		}
	}
}

// named returns the shapes that name locks.
func named() []shape {
	return slices.DeleteFunc(shapes(), func(s shape) bool { return !slices.Contains([]string{"jsonl", "csv", "edn-jepsen"}, s.name) })
}

// What a reader needs does not grow with the clients and locks that it has seen: of
// each there are 150,000 here.
func TestMemory(t *testing.T) {
	for _, s := range named() {
		p := watch(t, s, 300_000, 300_000, 300_000, func(linear.Event) error { return nil })
		t.Logf("%s: %d bytes", s.name, p.heap)
		if p.heap > fewBytes {
			t.Errorf("%s: %d bytes of memory, %d are the most", s.name, p.heap, fewBytes)
		}
	}
}

const fewBytes = 12 << 20

// Nor with the processes that Jepsen's :info ends, one after the other.
func TestMemoryOfCrashes(t *testing.T) {
	info := shape{name: "edn-info", format: history.EDN, event: func(b []byte, e generated) []byte {
		kind := "invoke"
		if e.returns {
			kind = "info"
		}
		return fmt.Appendf(b, "{:time %d, :type :%s, :process %d, :f :acquire, :value nil}\n", e.time, kind, e.index/2)
	}}
	debug.FreeOSMemory()
	var p peak
	n := 0
	readAll(t, info.stream(300_000, 1, 1), info.format, func(linear.Event) error {
		if n++; n%8192 == 0 {
			p.look()
		}
		return nil
	})
	t.Logf("%d bytes", p.heap)
	if p.heap > fewBytes {
		t.Errorf("%d bytes of memory, %d are the most", p.heap, fewBytes)
	}
}
