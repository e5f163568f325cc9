package linear

import (
	"flag"
	"fmt"
	"math"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
)

var update = flag.Bool("update", false, "measure, and write docs/benchmarks-checker.md and docs/checker-benchmark.svg")

// limit is how long porcupine may take for one history.
const limit = 2 * time.Second

// A row is one history judged by both.
type row struct {
	ops, unknown int
	legal        bool
	ours         time.Duration
	theirs       time.Duration // 0 if it did not finish
	plainly      time.Duration // theirs, with the plain model
}

// TestMeasure makes the table and the plot. How long something took is no test,
// but that both come to the same verdict is; without -update only that is seen,
// on the smallest histories.
func TestMeasure(t *testing.T) {
	unknowns, sizes := []int{0, 4}, []int{100}
	if *update {
		unknowns, sizes = []int{0, 4, 8, 12, 16}, []int{100, 1_000, 10_000, 100_000}
	}
	var rows []row
	for _, legal := range []bool{true, false} {
		for _, unknown := range unknowns {
			for _, n := range sizes {
				rows = append(rows, measure(t, n, unknown, legal))
			}
		}
	}
	if !*update {
		return
	}
	block := contended(1_000_000, 0, true)
	runtime.GC()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	start := time.Now()
	c := stream(t, block)
	took := time.Since(start)
	runtime.ReadMemStats(&after)
	runtime.KeepAlive(c)
	for name, text := range map[string]string{
		"benchmarks-checker.md": table(rows, took, after.TotalAlloc-before.TotalAlloc),
		"checker-benchmark.svg": plot(rows),
	} {
		if err := os.WriteFile("../../docs/"+name, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
}

// measure takes the quickest of some runs of each.
func measure(t *testing.T, n, unknown int, legal bool) row {
	r := row{ops: n, unknown: unknown, legal: legal, ours: math.MaxInt64}
	events := contended(n, unknown, legal)
	for range 5 {
		start := time.Now()
		got := Check(Mutex(), events, Options{})
		r.ours = min(r.ours, time.Since(start))
		if (got.Verdict == Valid) != legal {
			t.Fatal(got)
		}
	}
	ops := operations(events)
	r.theirs = general(t, searched(), ops, legal)
	r.plainly = general(t, plain(), ops, legal)
	return r
}

// general takes the quickest of some runs of porcupine, or 0 if it did not
// finish.
func general(t *testing.T, model porcupine.Model, ops []porcupine.Operation, legal bool) time.Duration {
	quickest := time.Duration(math.MaxInt64)
	for range 3 {
		start := time.Now()
		got := porcupine.CheckOperationsTimeout(model, ops, limit)
		quickest = min(quickest, time.Since(start))
		if got == porcupine.Unknown {
			return 0
		}
		if (got == porcupine.Ok) != legal {
			t.Fatalf("porcupine says %v of a history that is legal: %v", got, legal)
		}
	}
	return quickest
}

func table(rows []row, took time.Duration, allocated uint64) string {
	var b strings.Builder
	b.WriteString("# Benchmarks of the checker\n\n")
	b.WriteString("Everything on this page is written by one run of\n\n    make measure-checker\n\n")
	fmt.Fprintf(&b, "with %s on %s/%s, one core. All judge the same histories of a mutex: five clients that always want it, and as many acquires that\n", runtime.Version(), runtime.GOOS, runtime.GOARCH)
	fmt.Fprintf(&b, "never return as the second column says. An illegal history has one overlap, at nine tenths. Porcupine has %v for each; the time is the quickest\nof three runs (of five, here).\n\n", limit)
	b.WriteString("Porcupine is given two models. *Plain* is what one would write first: a `NondeterministicModel` in which an operation without an outcome may have\n" +
		"taken effect or not. *Tuned* is deterministic: an acquire without an outcome takes effect if the lock is free where it is put, else not, so no\n" +
		"state has two successors. A ratio is porcupine's time by ours.\n\n")
	b.WriteString("| operations | unknown | history | lockfault | tuned | ratio | plain | ratio |\n|---:|---:|---|---:|---:|---:|---:|---:|\n")
	for _, r := range rows {
		kind := "illegal"
		if r.legal {
			kind = "legal"
		}
		fmt.Fprintf(&b, "| %d | %d | %s | %s | %s | %s |\n", r.ops, r.unknown, kind, brief(r.ours), against(r.theirs, r.ours), against(r.plainly, r.ours))
	}
	b.WriteString("\n![time against operations](checker-benchmark.svg)\n\n")
	fmt.Fprintf(&b, "Ten million operations, fed to one `Checker` event by event: %s, %.1f million operations/s, and %d bytes allocated in all.\n",
		brief(took), 10/took.Seconds(), allocated)
	return b.String()
}

// against returns what porcupine took, and how many times ours that is.
func against(theirs, ours time.Duration) string {
	if theirs == 0 {
		return fmt.Sprintf("did not finish | > %.0f", float64(limit)/float64(ours))
	}
	return fmt.Sprintf("%s | %.0f", brief(theirs), float64(theirs)/float64(ours))
}

func brief(d time.Duration) string {
	switch {
	case d >= time.Second:
		return fmt.Sprintf("%.2f s", d.Seconds())
	case d >= time.Millisecond:
		return fmt.Sprintf("%.2f ms", float64(d)/1e6)
	}
	return fmt.Sprintf("%.1f µs", float64(d)/1e3)
}

// plot draws time against operations, both by powers of ten, of legal
// histories. A line that ends in a cross did not finish there.
func plot(rows []row) string {
	const left, top, width, height = 70, 30, 520, 330
	x := func(ops int) float64 { return left + (math.Log10(float64(ops))-2)/3*width }
	y := func(d time.Duration) float64 {
		return top + height - (math.Log10(d.Seconds())+6)/7*height // from 1 µs to 10 s
	}
	var b strings.Builder
	b.WriteString(`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 800 420" font-family="sans-serif" font-size="12">` + "\n")
	b.WriteString(`<title>Time to judge a legal history against its number of operations</title>` + "\n")
	b.WriteString(`<rect width="800" height="420" fill="white"/>` + "\n")
	for i, name := range []string{"100", "1,000", "10,000", "100,000"} {
		at := left + float64(i)/3*width
		fmt.Fprintf(&b, `<path d="M%.1f %d V%d" stroke="#ddd"/><text x="%.1f" y="%d" text-anchor="middle">%s</text>`+"\n", at, top, top+height, at, top+height+18, name)
	}
	for i, name := range []string{"1 µs", "10 µs", "100 µs", "1 ms", "10 ms", "100 ms", "1 s", "10 s"} {
		at := top + height - float64(i)/7*height
		fmt.Fprintf(&b, `<path d="M%d %.1f H%d" stroke="#ddd"/><text x="%d" y="%.1f" text-anchor="end">%s</text>`+"\n", left, at, left+width, left-6, at+4, name)
	}
	fmt.Fprintf(&b, `<text x="%d" y="%d" text-anchor="middle">operations</text>`+"\n", left+width/2, top+height+40)
	line := func(unknown int, theirs bool, colour, label string, at int) {
		var points []string
		cross := ""
		for _, r := range rows {
			if !r.legal || r.unknown != unknown {
				continue
			}
			d := r.ours
			if theirs {
				d = r.theirs
			}
			if d == 0 {
				cross = fmt.Sprintf(`<path d="M%.1f %.1f l8 8 m-8 0 l8 -8" stroke="%s" stroke-width="2"/>`, x(r.ops)-4, y(limit)-4, colour)
				points = append(points, fmt.Sprintf("%.1f,%.1f", x(r.ops), y(limit)))
				break
			}
			points = append(points, fmt.Sprintf("%.1f,%.1f", x(r.ops), y(d)))
		}
		fmt.Fprintf(&b, `<polyline points="%s" fill="none" stroke="%s" stroke-width="2"/>%s`+"\n", strings.Join(points, " "), colour, cross)
		fmt.Fprintf(&b, `<path d="M%d %d h18" stroke="%s" stroke-width="2"/><text x="%d" y="%d">%s</text>`+"\n", left+width+15, at-4, colour, left+width+38, at, label)
	}
	for i, unknown := range []int{16, 12, 8, 4, 0} {
		line(unknown, true, []string{"#7f0000", "#b30000", "#d7301f", "#ef6548", "#fc8d59"}[i], fmt.Sprintf("porcupine, %d unknown", unknown), 50+20*i)
	}
	line(16, false, "#08519c", "lockfault, 16 unknown", 160)
	line(0, false, "#6baed6", "lockfault, 0 unknown", 180)
	fmt.Fprintf(&b, `<text x="%d" y="205">× did not finish</text>`+"\n</svg>\n", left+width+15)
	return b.String()
}
