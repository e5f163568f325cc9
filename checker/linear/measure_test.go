package linear

import (
	"cmp"
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

// enough is how long something is repeated, if it is not rarer than a few times:
// the quickest of many is what it costs when nobody else wants the machine.
const enough = 50 * time.Millisecond

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
	for begin, runs := time.Now(), 0; runs < 5 || time.Since(begin) < enough; runs++ {
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

// general takes the quickest of some runs of porcupine, or 0 if two of them did
// not finish before one had: one alone may be the machine's fault.
func general(t *testing.T, model porcupine.Model, ops []porcupine.Operation, legal bool) time.Duration {
	quickest := time.Duration(math.MaxInt64)
	unfinished := 0
	for begin, runs := time.Now(), 0; runs < 3 || time.Since(begin) < enough; runs++ {
		start := time.Now()
		got := porcupine.CheckOperationsTimeout(model, ops, limit)
		took := time.Since(start)
		if got == porcupine.Unknown {
			if unfinished++; unfinished == 2 && quickest == math.MaxInt64 {
				return 0
			}
			continue
		}
		if (got == porcupine.Ok) != legal {
			t.Fatalf("porcupine says %v of a history that is legal: %v", got, legal)
		}
		quickest = min(quickest, took)
	}
	return quickest
}

func table(rows []row, took time.Duration, allocated uint64) string {
	var b strings.Builder
	b.WriteString("# Benchmarks of the checker\n\n")
	b.WriteString("Everything on this page is written by one run of\n\n    make measure-checker\n\n")
	fmt.Fprintf(&b, "with %s on %s/%s, one core. All judge the same histories of a mutex: five clients that always want it, and as many acquires that\n", runtime.Version(), runtime.GOOS, runtime.GOARCH)
	fmt.Fprintf(&b, "never return as the second column says. An illegal history has one overlap, at nine tenths. Porcupine has %v for each. The time is the\nquickest of at least three runs.\n\n", limit)
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
	b.WriteString(comes(rows))
	fmt.Fprintf(&b, "Ten million operations, fed to one `Checker` event by event: %s, %.1f million operations/s, and %d bytes allocated in all.\n",
		brief(took), 10/took.Seconds(), allocated)
	return b.String()
}

// comes says what the table comes to.
func comes(rows []row) string {
	ratio := func(theirs time.Duration, r row) float64 {
		if theirs == 0 {
			theirs = limit
		}
		return float64(theirs) / float64(r.ours)
	}
	least := math.Inf(1)
	large, tuned, plainly := 0, 0, 0
	for _, r := range rows {
		if r.ops > 100 {
			least = min(least, ratio(r.theirs, r), ratio(r.plainly, r))
		}
		if r.ops < 10_000 {
			continue
		}
		large++
		if ratio(r.theirs, r) >= 100 {
			tuned++
		}
		if ratio(r.plainly, r) >= 100 {
			plainly++
		}
	}
	return fmt.Sprintf(`The aim was to be a hundred times as quick as porcupine from 10,000 operations on, and never slower above 100. The least ratio above 100 is %.0f. From 10,000
on, a hundred is reached in %d of %d rows against the tuned model, and in %d against the plain one. What falls short are histories in which porcupine finds an order, or that there
is none, without going back: it then takes a microsecond or two for an operation, and a hundredth of that is less than it takes to read one. For an operation are
two events of over a hundred bytes; each is read, finds its client by name, and may be copied, since it may become evidence. No step of it stands out.

`, least, tuned, large, plainly)
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

// A curve is one line of the plot.
type curve struct {
	label, colour, dash string
	unknown             int
	time                func(row) time.Duration // 0 if it did not finish
}

// plot draws time against operations, both by powers of ten, of legal and of
// illegal histories. A line that ends in a cross did not finish there.
func plot(rows []row) string {
	ours := func(r row) time.Duration { return r.ours }
	tuned := func(r row) time.Duration { return r.theirs }
	plainly := func(r row) time.Duration { return r.plainly }
	curves := []curve{
		{"porcupine, plain, 16 unknown", "#7f0000", "6 4", 16, plainly},
		{"porcupine, plain, 0 unknown", "#ef6548", "6 4", 0, plainly},
		{"porcupine, tuned, 16 unknown", "#7f0000", "", 16, tuned},
		{"porcupine, tuned, 8 unknown", "#b30000", "", 8, tuned},
		{"porcupine, tuned, 4 unknown", "#d7301f", "", 4, tuned},
		{"porcupine, tuned, 0 unknown", "#ef6548", "", 0, tuned},
		{"lockfault, 16 unknown", "#08519c", "", 16, ours},
		{"lockfault, 0 unknown", "#6baed6", "", 0, ours},
	}
	const left, top, width, height, gap = 70, 44, 330, 330, 30
	var b strings.Builder
	b.WriteString(`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 1000 430" font-family="sans-serif" font-size="12">` + "\n")
	b.WriteString(`<title>Time to judge a history against its number of operations</title>` + "\n")
	b.WriteString(`<rect width="1000" height="430" fill="white"/>` + "\n")
	y := func(d time.Duration) float64 {
		return top + height - (math.Log10(d.Seconds())+6)/7*height // from 1 µs to 10 s
	}
	for panel, legal := range []bool{true, false} {
		from := left + panel*(width+gap)
		x := func(ops int) float64 { return float64(from) + (math.Log10(float64(ops))-2)/3*width }
		fmt.Fprintf(&b, `<text x="%d" y="%d" text-anchor="middle" font-weight="bold">%s</text>`+"\n", from+width/2, top-16, map[bool]string{true: "legal", false: "illegal"}[legal])
		for i, name := range []string{"100", "1,000", "10,000", "100,000"} {
			at := x(100 * int(math.Pow10(i)))
			anchor := []string{"start", "middle", "middle", "end"}[i]
			fmt.Fprintf(&b, `<path d="M%.1f %d V%d" stroke="#ddd"/><text x="%.1f" y="%d" text-anchor="%s">%s</text>`+"\n", at, top, top+height, at, top+height+18, anchor, name)
		}
		for i, name := range []string{"1 µs", "10 µs", "100 µs", "1 ms", "10 ms", "100 ms", "1 s", "10 s"} {
			at := top + height - float64(i)/7*height
			fmt.Fprintf(&b, `<path d="M%d %.1f H%d" stroke="#ddd"/>`, from, at, from+width)
			if panel == 0 {
				fmt.Fprintf(&b, `<text x="%d" y="%.1f" text-anchor="end">%s</text>`, from-6, at+4, name)
			}
			b.WriteString("\n")
		}
		fmt.Fprintf(&b, `<text x="%d" y="%d" text-anchor="middle">operations</text>`+"\n", from+width/2, top+height+38)
		for _, c := range curves {
			var points []string
			for _, r := range rows {
				if r.legal != legal || r.unknown != c.unknown {
					continue
				}
				if c.time(r) == 0 {
					points = append(points, fmt.Sprintf("%.1f,%.1f", x(r.ops), y(limit)))
					fmt.Fprintf(&b, `<path d="M%.1f %.1f l8 8 m-8 0 l8 -8" stroke="%s" stroke-width="2"/>`+"\n", x(r.ops)-4, y(limit)-4, c.colour)
					break
				}
				points = append(points, fmt.Sprintf("%.1f,%.1f", x(r.ops), y(c.time(r))))
			}
			fmt.Fprintf(&b, `<polyline points="%s" fill="none" stroke="%s" stroke-width="2" stroke-dasharray="%s"/>`+"\n", strings.Join(points, " "), c.colour, cmp.Or(c.dash, "none"))
		}
	}
	legend := left + 2*width + gap + 16
	for i, c := range curves {
		at := top + 12 + 20*i
		if c.label[0] == 'l' {
			at += 10
		}
		fmt.Fprintf(&b, `<path d="M%d %d h22" stroke="%s" stroke-width="2" stroke-dasharray="%s"/><text x="%d" y="%d">%s</text>`+"\n", legend, at-4, c.colour, cmp.Or(c.dash, "none"), legend+28, at, c.label)
	}
	fmt.Fprintf(&b, `<text x="%d" y="%d">× did not finish in %v</text>`+"\n</svg>\n", legend, top+12+20*len(curves)+20, limit)
	return b.String()
}
