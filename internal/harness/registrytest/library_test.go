package registrytest_test

import (
	"bytes"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"gotest.tools/v3/golden"

	"github.com/lockfault/lockfault/checker"
	"github.com/lockfault/lockfault/internal/harness"
	"github.com/lockfault/lockfault/internal/leases"
	"github.com/lockfault/lockfault/internal/oracle"
	"github.com/lockfault/lockfault/internal/racetest"
	"github.com/lockfault/lockfault/reports"
	"github.com/lockfault/lockfault/scenarios"
	"github.com/lockfault/lockfault/strategies"
	"github.com/lockfault/lockfault/strategies/all"
)

var playAll = flag.Bool("all", false, "all seeds in TestEverySeedAgrees, instead of a random selection (default false)")

// eachCell calls f for every strategy under every scenario of the library, a
// scenario at a time in parallel.
func eachCell(t *testing.T, f func(t *testing.T, strategy strategies.Strategy, script *scenarios.Script)) {
	library, err := scenarios.Library()
	if err != nil {
		t.Fatal(err)
	}
	for _, script := range library {
		t.Run(script.Name, func(t *testing.T) {
			t.Parallel()
			for _, strategy := range all.Registry().All() {
				f(t, strategy, script)
			}
		})
	}
}

// An outcomeTable collects what each anomaly of each cell means for the class of its lock.
type outcomeTable struct {
	mu    sync.Mutex
	lines map[string][]string // by strategy
}

func (o *outcomeTable) add(strategy strategies.Strategy, script *scenarios.Script, played harness.Outcome) {
	var words []string
	for _, f := range leases.Judge(played.History, leases.LockOf(strategy)) {
		words = append(words, fmt.Sprintf("%s %s", f.Outcome, f.Anomaly))
	}
	if len(words) == 0 {
		return
	}
	class, _ := leases.ClassOf(played.History, leases.LockOf(strategy))
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.lines == nil {
		o.lines = map[string][]string{}
	}
	o.lines[strategy.Name] = append(o.lines[strategy.Name], fmt.Sprintf("  %s (%s): %s\n", script.Name, class, strings.Join(words, ", ")))
}

func (o *outcomeTable) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(o.lines)) {
		slices.Sort(o.lines[name])
		fmt.Fprintf(&b, "%s\n%s", name, strings.Join(o.lines[name], ""))
	}
	return b.String()
}

// encode returns the bytes of a history's file.
func encode(t *testing.T, h checker.History) []byte {
	t.Helper()
	var file bytes.Buffer
	if err := checker.Encode(&file, h); err != nil {
		t.Fatal(err)
	}
	return file.Bytes()
}

// Every cell comes out as its script expects, each witness proves what it says
// by a second, naive definition, and playing the cell again yields the same
// bytes, or the same anomalies where the strategy says that its histories vary.
func TestEveryCellTwice(t *testing.T) {
	racetest.Skip(t)
	outcomes := &outcomeTable{}
	t.Cleanup(func() { golden.Assert(t, outcomes.String(), "outcomes.txt") }) // when all subtests have ended
	eachCell(t, func(t *testing.T, strategy strategies.Strategy, script *scenarios.Script) {
		cell := harness.Cell{Strategy: strategy, Script: script, Seed: 1}
		first := harness.Play(t, cell)
		if first.Status == harness.NotApplicable {
			return
		}
		if first.Status == harness.Error || !slices.Equal(first.Verdict.Anomalies(), first.Expected) {
			t.Errorf("%s: %s %v, want %v\n%s", strategy.Name, first.Status, first.Verdict.Anomalies(), first.Expected, first.Reason)
		}
		explained(t, first)
		outcomes.add(strategy, script, first)
		for _, w := range first.Verdict.Witnesses {
			if err := oracle.Witness(first.History, w); err != nil {
				t.Errorf("%s: the witness of %s proves nothing: %v", strategy.Name, w.Anomaly, err)
			}
		}
		if differs := differing(t, strategy, first, harness.Play(t, cell)); differs != "" {
			t.Errorf("%s: the same seed gave two %s", strategy.Name, differs)
		}
	})
}

// differing says how two runs of a cell differ that must not: in a byte, or in what they
// show if the strategy varies. It is empty if they don't.
func differing(t *testing.T, strategy strategies.Strategy, first, second harness.Outcome) string {
	t.Helper()
	if strategy.HistoryVaries != "" {
		if first.Status != second.Status || !slices.Equal(first.Verdict.Anomalies(), second.Verdict.Anomalies()) {
			return fmt.Sprintf("verdicts, %s %v and %s %v", first.Status, first.Verdict.Anomalies(), second.Status, second.Verdict.Anomalies())
		}
		return ""
	}
	if a, b := encode(t, first.History), encode(t, second.History); !bytes.Equal(a, b) {
		return "histories, which differ from line " + difference(a, b)
	}
	return ""
}

// explained checks that a cell that has no legal order says why, and that nobody
// reads that nothing went wrong and then that it isn't linearizable without that.
func explained(t *testing.T, o harness.Outcome) {
	t.Helper()
	v, name := o.Verdict, o.History.Meta.Strategy+" under "+o.History.Meta.Scenario
	conflict := checker.Linearize(o.History)
	if conflict == nil && slices.Contains(v.Anomalies(), checker.Overlap) {
		t.Errorf("%s: linearizable, with an overlap", name)
	}
	if conflict != nil && len(conflict.Events) == 0 {
		t.Errorf("%s: %s", name, conflict.Message)
	}
	cell := reports.Cell{Verdict: reports.Verdict(o.Status), Linearizable: conflict == nil, Conflict: conflict, Witnesses: v.Witnesses,
		Anomalies: v.Anomalies(), Expected: o.Expected}
	cell.Settle()
	var b strings.Builder
	if err := reports.Story(&b, cell, o.History, reports.View{}); err != nil {
		t.Fatal(err)
	}
	story := b.String()
	for _, w := range v.Witnesses {
		for _, i := range w.Events {
			if !regexp.MustCompile(fmt.Sprintf(`(?m)^ *(%d|%d-%d|%d-%d) `, i, i-1, i, i, i+1)).MatchString(story) {
				t.Errorf("%s: event %d proves %s, and has no line", name, i, w.Anomaly)
			}
		}
	}
	if strings.Contains(story, "held: nothing went wrong") && strings.Contains(story, "linearizable: no") &&
		!strings.Contains(story, "in a legal order nothing but a release or a crash ends a hold") {
		t.Errorf("%s: held, and not linearizable, and nothing says why:\n%s", name, story[strings.Index(story, "held: nothing"):])
	}
}

// Locks that tell their clients how long they can rely on them have a legal order where
// the clients stop then, as leases; as locks that are released they have none.
func TestLeasesHaveALegalOrder(t *testing.T) {
	script, err := scenarios.Lookup("delayed-acquire-reply")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"redlock", "redsync", "redsync-5"} {
		strategy, _ := all.Registry().Lookup(name)
		o := harness.Play(t, harness.Cell{Strategy: strategy, Script: script, Seed: 1})
		if c := checker.Linearize(o.History); o.Status != harness.Held || c != nil {
			t.Errorf("%s: %s, %+v", name, o.Status, c)
		}
		h := o.History
		h.Meta.HonourValidity = false
		if checker.Linearize(h) == nil {
			t.Errorf("%s: linearizable although nobody stops in time", name)
		}
	}
}

// A line of the library that meets nothing with some lock, and doesn't say that it
// may, tests nothing of that lock: each has a reason.
func TestEveryLineOfTheLibraryMeetsSomething(t *testing.T) {
	racetest.Skip(t)
	type line struct{ scenario, text string }
	of := func(strategy string, names ...string) bool { return slices.Contains(names, strategy) }
	excused := map[line]func(strategy string) bool{
		// The races of document 000 are about two steps of one algorithm. To
		// others the rest of the script is an ordinary contention.
		{"getset-race", "hold A B C before GETSET"}:       func(s string) bool { return s != "getset-timestamp" },
		{"getset-race", "hold B C before SET"}:            func(s string) bool { return s != "getset-timestamp" },
		{"getset-late-restore", "hold A B before GETSET"}: func(s string) bool { return s != "getset-timestamp" },
		{"getset-late-restore", "hold B before SET"}:      func(s string) bool { return s != "getset-timestamp" },
		// A release that compares and deletes on the server is what can be
		// fooled by an owner value that two have. These compare before.
		{"owner-collision", "hold A before EVAL"}: func(s string) bool {
			return of(s, "setnx-expire", "setnx-expire-repair", "getset-timestamp", "set-nx-px-del", "set-nx-px-get-del")
		},
	}
	var mu sync.Mutex
	used := map[line]bool{}
	t.Run("cells", func(t *testing.T) {
		eachCell(t, func(t *testing.T, strategy strategies.Strategy, script *scenarios.Script) {
			for _, m := range harness.Play(t, harness.Cell{Strategy: strategy, Script: script, Seed: 1}).MetNothing {
				at := line{script.Name, m.Text}
				if excuse := excused[at]; !m.OrNone && (excuse == nil || !excuse(strategy.Name)) {
					t.Errorf("%s: line %d, %s, met nothing", strategy.Name, m.Line, m.Text)
				}
				mu.Lock()
				used[at] = true
				mu.Unlock()
			}
		})
	})
	for at := range excused {
		if !used[at] {
			t.Errorf("%s: %q is excused, and meets something with every strategy", at.scenario, at.text)
		}
	}
}

// Another seed changes latencies and ties, never what a scripted scenario shows. Each run makes a
// random selection of seeds; -all selects all.
func TestEverySeedAgrees(t *testing.T) {
	racetest.Skip(t)
	const many = 20
	list := rand.Perm(many)
	if !*playAll {
		list = list[:seeds]
	}
	for i := range list {
		list[i] += 2 // 1 is what all others play
	}
	t.Logf("seeds %d", list)
	eachCell(t, func(t *testing.T, strategy strategies.Strategy, script *scenarios.Script) {
		for _, seed := range list {
			outcome := harness.Play(t, harness.Cell{Strategy: strategy, Script: script, Seed: uint64(seed)})
			if outcome.Status == harness.NotApplicable {
				return
			}
			if outcome.Status == harness.Error || !slices.Equal(outcome.Verdict.Anomalies(), outcome.Expected) {
				t.Errorf("%s with seed %d: %s %v, want %v\n%s", strategy.Name, seed, outcome.Status, outcome.Verdict.Anomalies(), outcome.Expected, outcome.Reason)
			}
		}
	})
}

// A lease of another length changes the times, not what a scenario shows.
func TestEveryLeaseAgrees(t *testing.T) {
	racetest.Skip(t)
	library, err := scenarios.Library()
	if err != nil {
		t.Fatal(err)
	}
	strategy, _ := all.Registry().Lookup("set-nx-px-lua")
	for _, script := range library {
		for _, ttl := range ttls {
			outcome := harness.Play(t, harness.Cell{Strategy: strategy, Script: script, Seed: 1, TTL: ttl})
			if outcome.Status == harness.Error || !slices.Equal(outcome.Verdict.Anomalies(), outcome.Expected) {
				t.Errorf("%s with a TTL of %v: %s %v, want %v\n%s", script.Name, ttl, outcome.Status, outcome.Verdict.Anomalies(), outcome.Expected, outcome.Reason)
			}
		}
	}
}

// What the scripts beside these tests show, which other worlds are compared with,
// is none of chance: no seed and no lease shows another thing.
func TestTheAgreementTableIsSettled(t *testing.T) {
	racetest.Skip(t)
	files, err := filepath.Glob("../testdata/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	for _, file := range files {
		src, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		script, err := scenarios.Parse(file, src)
		if err != nil {
			t.Fatal(err)
		}
		t.Run(script.Name, func(t *testing.T) {
			t.Parallel()
			for _, name := range []string{"set-nx-px-lua", "redisson", "set-wait", "fenced", "redlock"} {
				strategy, _ := all.Registry().Lookup(name)
				var first harness.Outcome
				for i, ttl := range []time.Duration{time.Second, 2 * time.Second, 8 * time.Second} {
					for seed := range uint64(6) {
						outcome := harness.Play(t, harness.Cell{Strategy: strategy, Script: script, Seed: seed + 1, TTL: ttl})
						if i == 0 && seed == 0 {
							first = outcome
						}
						if outcome.Status != first.Status || !slices.Equal(outcome.Verdict.Anomalies(), first.Verdict.Anomalies()) {
							t.Errorf("%s with seed %d and a TTL of %v: %s %v; with seed 1 and 1s: %s %v", name, seed+1, ttl,
								outcome.Status, outcome.Verdict.Anomalies(), first.Status, first.Verdict.Anomalies())
						}
					}
				}
			}
		})
	}
}

// difference shows where two files part.
func difference(a, b []byte) string {
	linesA, linesB := bytes.Split(a, []byte("\n")), bytes.Split(b, []byte("\n"))
	for i := range min(len(linesA), len(linesB)) {
		if !bytes.Equal(linesA[i], linesB[i]) {
			return string(linesA[i]) + "\nand\n" + string(linesB[i])
		}
	}
	return "the end of one"
}
