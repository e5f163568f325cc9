package linear

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
)

// contended returns a history of n operations, acquires and releases, by five
// clients that are always calling, plus unknown acquires that never return,
// spread evenly. An illegal one has an overlap at nine tenths.
func contended(n, unknown int, legal bool) []Event {
	names := []string{"A", "B", "C", "D", "E"}
	events := make([]Event, 0, 2*n+unknown)
	add := func(client string, op Op, phase Phase) {
		events = append(events, Event{Time: time.Duration(len(events)), Client: client, Op: op, Phase: phase})
	}
	for _, name := range names {
		add(name, Acquire, Invoke)
	}
	rounds := n / 2
	for i := range rounds {
		if unknown > 0 && i%max(1, rounds/unknown) == 0 && i/max(1, rounds/unknown) < unknown {
			add(fmt.Sprint("U", i), Acquire, Invoke)
		}
		name := names[i%5]
		add(name, Acquire, ReturnOK)
		if !legal && i == rounds*9/10 {
			add("X", Acquire, Invoke)
			add("X", Acquire, ReturnOK)
		}
		add(name, Release, Invoke)
		add(name, Release, ReturnOK)
		if i+5 < rounds {
			add(name, Acquire, Invoke)
		}
	}
	return events
}

// searched is the mutex for porcupine, made to be quick: an acquire without an
// outcome takes effect where it can, so no state has two successors.
func searched() porcupine.Model {
	return porcupine.Model{
		Init: func() any { return 0 },
		Step: func(state, input, _ any) (bool, any) {
			s, owner := input.(step), state.(int)
			switch {
			case s.what == "acquire" && owner == 0:
				return true, s.client
			case s.what == "acquire":
				return s.phase == ReturnUnknown, owner
			}
			return owner == s.client, 0
		},
	}
}

// plain is the mutex for porcupine as one would write it down first: an
// operation without an outcome may have taken effect or not.
func plain() porcupine.Model {
	model := porcupine.NondeterministicModel{
		Init: func() []any { return []any{0} },
		Step: func(state, input, _ any) []any {
			s, owner := input.(step), state.(int)
			var next []any
			if s.phase == ReturnUnknown {
				next = append(next, owner)
			}
			switch {
			case s.what == "acquire" && owner == 0:
				next = append(next, s.client)
			case s.what == "release" && owner == s.client:
				next = append(next, 0)
			}
			return next
		},
	}
	return model.ToModel()
}

func operations(events []Event) []porcupine.Operation {
	var ops []porcupine.Operation
	open := map[string]int{}
	number := map[string]int{}
	for i, e := range events {
		if number[e.Client] == 0 {
			number[e.Client] = len(number) + 1
		}
		if e.Phase == Invoke {
			what := "acquire"
			if e.Op == Release {
				what = "release"
			}
			open[e.Client] = len(ops)
			ops = append(ops, porcupine.Operation{Call: int64(i), Return: never,
				Input: step{what: what, client: number[e.Client], phase: ReturnUnknown}})
			continue
		}
		op := &ops[open[e.Client]]
		s := op.Input.(step)
		s.phase = e.Phase
		op.Input, op.Return = s, int64(i)
	}
	return ops
}

// BenchmarkCheck and BenchmarkPorcupine judge the same histories; TestMeasure
// makes a table of them, with a limit to porcupine's time.
func BenchmarkCheck(b *testing.B) {
	for _, n := range []int{100, 1_000, 10_000, 100_000} {
		for _, unknown := range []int{0, 16} {
			b.Run(fmt.Sprintf("ops=%d/unknown=%d", n, unknown), func(b *testing.B) {
				events := contended(n, unknown, true)
				b.ReportAllocs()
				for b.Loop() {
					if r := Check(Mutex(), events, Options{}); r.Verdict != Valid {
						b.Fatal(r)
					}
				}
				b.ReportMetric(float64(n)*float64(b.N)/b.Elapsed().Seconds(), "ops/s")
			})
		}
	}
}

func BenchmarkPorcupine(b *testing.B) {
	for _, n := range []int{100, 1_000, 10_000} {
		b.Run(fmt.Sprintf("ops=%d/unknown=0", n), func(b *testing.B) {
			ops := operations(contended(n, 0, true))
			for b.Loop() {
				if !porcupine.CheckOperations(searched(), ops) {
					b.Fatal("not legal")
				}
			}
			b.ReportMetric(float64(n)*float64(b.N)/b.Elapsed().Seconds(), "ops/s")
		})
	}
}

// BenchmarkStream feeds ten million operations to one Checker.
func BenchmarkStream(b *testing.B) {
	block := contended(1_000_000, 0, true)
	for b.Loop() {
		stream(b, block)
	}
	b.ReportMetric(1e7*float64(b.N)/b.Elapsed().Seconds(), "ops/s")
}

func stream(t testing.TB, block []Event) *Checker {
	c := New(Mutex(), Options{})
	for i := range 10 {
		for _, e := range block {
			e.Time += time.Duration(i * len(block))
			if err := c.Add(e); err != nil {
				t.Fatal(err)
			}
		}
	}
	if r := c.Result(); r.Verdict != Valid || r.Ops != 10_000_000 {
		t.Fatal(r)
	}
	return c
}

// BenchmarkSpec judges a valid history of each kind of lock.
func BenchmarkSpec(b *testing.B) {
	for name, spec := range specs() {
		b.Run(name, func(b *testing.B) {
			events := contended(100_000, 0, true)
			for i := range events {
				if e := &events[i]; e.Op == Acquire && e.Phase == ReturnOK {
					e.Token, e.Lease = int64(i+1), e.Time+2
				}
				if strings.HasPrefix(name, "multi") {
					events[i].Key = "x y"
				}
			}
			for b.Loop() {
				if r := Check(spec, events, Options{}); r.Verdict != Valid {
					b.Fatal(r)
				}
			}
			b.ReportMetric(1e5*float64(b.N)/b.Elapsed().Seconds(), "ops/s")
		})
	}
}

// BenchmarkOpen has much that is open at a time, or over: B/op is what it costs in all.
func BenchmarkOpen(b *testing.B) {
	add := func(c *Checker, i int, client, key string, op Op) {
		for _, phase := range []Phase{Invoke, ReturnOK} {
			if err := c.Add(Event{Time: time.Duration(i), Client: client, Key: key, Op: op, Phase: phase}); err != nil {
				b.Fatal(err)
			}
		}
	}
	b.Run("one client, 160000 locks", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			c := New(Mutex(), Options{})
			for i := range 320_000 {
				add(c, i, "A", fmt.Sprint(i%160_000), []Op{Acquire, Release}[i/160_000])
			}
			c.Result()
		}
	})
	b.Run("16000 holders, skew", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			c := New(Mutex(), Options{Skew: time.Hour})
			for i := range 32_000 {
				add(c, i, fmt.Sprint(i%16_000), "", []Op{Acquire, Release}[i/16_000])
			}
			c.Result()
		}
	})
	b.Run("200000 locks in turn", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			c := New(Mutex(), Options{})
			for i := range 400_000 {
				add(c, i, fmt.Sprint(i/2%100), fmt.Sprint(i/2), []Op{Acquire, Release}[i%2])
			}
			var m runtime.MemStats
			runtime.GC()
			runtime.ReadMemStats(&m)
			b.ReportMetric(float64(m.HeapAlloc), "B-kept")
			runtime.KeepAlive(c)
		}
	})
}
