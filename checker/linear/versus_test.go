package linear

import (
	"cmp"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/lockfault/lockfault/internal/racetest"
)

// A match is one history judged by both.
type match struct {
	name   string
	spec   Spec
	strict bool
	traffic
	ours   time.Duration
	theirs time.Duration
	ended  bool // porcupine finished
	open   bool // and we did not
}

// ratio is porcupine's time by ours; of what it did not finish a lower bound.
func (m *match) ratio() float64 { return float64(m.theirs) / float64(m.ours) }

// matches are what is measured, but for the sizes.
func matches() []match {
	var all []match
	add := func(name string, spec Spec, several bool) {
		for _, strict := range []bool{false, true} {
			for _, of := range []traffic{{}, {never: 4}, {percent: 1}} {
				for _, wrong := range []bool{false, true} {
					of.spec, of.tries, of.wrong, of.several = spec, strict, wrong, several
					all = append(all, match{name: name, spec: spec, strict: strict, traffic: of})
				}
			}
		}
	}
	add("mutex", Mutex(), false)
	add("reentrant", Reentrant(2), false)
	add("lease, believed", Lease(Believed), false)
	add("lease, known", Lease(Known), false)
	add("lease, not known", Lease(NotKnown), false)
	add("lease, server's clock", Lease(ByServer), false)
	add("fenced", Fenced(), false)
	add("multi", Multi(), false)
	add("semaphore(1)", Semaphore(1), false)
	add("semaphore(3)", Semaphore(3), false)
	add("semaphore(3), several", Semaphore(3), true)
	add("semaphore(10)", Semaphore(10), false)
	add("mutex with tokens", MutexTokens(), false)
	add("read-write", ReadWrite(), false)
	return all
}

// play lets both judge a history of so many operations. Porcupine has as long as patience says.
func (m match) play(t testing.TB, ops int, patience func(ours time.Duration) time.Duration) match {
	m.traffic.ops = ops
	events := m.history()
	verdict := Valid
	if m.wrong {
		verdict = Invalid
	}
	m.ours = quickest(func() {
		r := Check(m.spec, events, Options{Strict: m.strict})
		m.open = r.Verdict == Unknown
		if r.Verdict != verdict && !m.open {
			t.Fatalf("%s, strict=%v, %+v: %v, not %v", m.name, m.strict, m.traffic, r, verdict)
		}
	})
	if patience == nil {
		return m
	}
	list := calls(m.spec, events, m.strict)
	model := rivalOf(m.spec, list)
	limit := patience(m.ours)
	m.ended = true
	m.theirs = quickest(func() {
		got := porcupine.CheckOperationsTimeout(model, list, limit)
		if m.ended = got != porcupine.Unknown; m.ended && (got == porcupine.Ok) == m.wrong {
			t.Fatalf("%s, strict=%v, %+v: porcupine says %v", m.name, m.strict, m.traffic, got)
		}
	})
	return m
}

// quickest returns the least processor time of some runs: of three at least, if they are not long. Short ones are timed
// several at once, since what other threads take is booked late at times: 2 ms of it were seen to count as 0.08.
func quickest(run func()) time.Duration {
	least := time.Duration(math.MaxInt64)
	for begin, samples := time.Now(), 0; samples < 3 && time.Since(begin) < time.Second; samples++ {
		start, runs := spent(), time.Duration(0)
		for since := time.Now(); runs == 0 || time.Since(since) < enough/3; runs++ {
			run()
		}
		least = min(least, (spent()-start)/runs)
	}
	return least
}

// TestSlowVersus compares the checker with porcupine on traffic of -ops operations (default 100), and
// logs the time of each and the rows of the table in docs/checker.md. Porcupine has -patience for
// each history. An unknown verdict fails the test, except for a strict semaphore of ten permits with
// unknown outcomes.
func TestSlowVersus(t *testing.T) {
	racetest.Skip(t)
	var names []string
	ratios := map[string]*[2]least{} // by name; not strict, and strict
	for _, m := range matches() {
		if !strings.Contains(m.name, *specFlag) {
			continue
		}
		m = m.play(t, int(cmp.Or(*opsFlag, 100)), func(time.Duration) time.Duration { return *patienceFlag })
		t.Logf("%-22s strict=%-5v never=%d percent=%d wrong=%-5v ours=%v theirs=%v ended=%v unknown=%v ratio=%.1f", m.name, m.strict, m.never, m.percent, m.wrong, m.ours, m.theirs, m.ended, m.open, m.ratio())
		if m.open && !(m.spec == Semaphore(10) && m.strict && m.percent > 0) {
			t.Errorf("%s, strict=%v, %+v stays unknown", m.name, m.strict, m.traffic)
		}
		if ratios[m.name] == nil {
			names, ratios[m.name] = append(names, m.name), &[2]least{}
		}
		at := 0
		if m.strict {
			at = 1
		}
		ratios[m.name][at].of(&m)
	}
	table := "| specification | ratio | strict |\n|---|---:|---:|\n"
	for _, name := range names {
		table += fmt.Sprintf("| %s | %s | %s |\n", name, &ratios[name][0], &ratios[name][1])
	}
	t.Logf("the least ratios\n%s", table)
}

// A least is the least ratio of some matches, and how many of them we left open.
type least struct {
	ratio float64
	any   bool
	open  int
}

func (l *least) of(m *match) {
	if m.open {
		l.open++
	} else if !l.any || m.ratio() < l.ratio {
		l.ratio, l.any = m.ratio(), true
	}
}

func (l *least) String() string {
	text := fmt.Sprintf("%.1f", l.ratio)
	if l.open > 0 {
		text += fmt.Sprintf(", %d unknown", l.open)
	}
	return text
}
