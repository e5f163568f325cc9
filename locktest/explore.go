package locktest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/lockfault/lockfault/checker"
	"github.com/lockfault/lockfault/internal/cellresult"
	"github.com/lockfault/lockfault/internal/explore"
	"github.com/lockfault/lockfault/internal/harness"
	"github.com/lockfault/lockfault/reports"
	"github.com/lockfault/lockfault/scenarios"
	"github.com/lockfault/lockfault/strategies"
)

// A Fault is a kind of fault that a [Search] may have happen: "advance" (time goes on to
// the end of a lease), "crash", "pause", "lose-reply", "failover" and more, which
// docs/explore.md lists.
type Fault = explore.Fault

// A Search says how far [Explore] looks.
type Search struct {
	// Clients take part, and each tries so many Rounds to get the lock, writes and
	// releases it; 0 is 2 clients and 1 round.
	Clients, Rounds int
	// Faults is how often each kind may happen; others don't.
	Faults map[Fault]int
	// Extend lets a holder prolong its lease once, and Reenter lets it try to get the lock
	// that it has.
	Extend, Reenter bool
	// Retries is how often the clients' library repeats a command that got no answer.
	Retries int
	// Accepts are the anomalies that the lock may show.
	Accepts []string
	// Exhaust has the test fail unless everything within the bound was seen.
	Exhaust bool
}

// Explore searches all orders in which the requests of some clients can reach their
// servers, with the faults that the search may have happen, for the shortest that
// violates something which isn't accepted: see lockfault explore. What is found is
// played again in a process of its own, and kept as a script below testdata/lockfault in
// a directory of the test's name. The next time such scripts are played first, and a
// search is only begun when none of them shows anything any more.
//
// A test calls it once, since the process of its own is told by the test's name.
func Explore(t *testing.T, s Subject, search Search) {
	t.Helper()
	test, err := prepare(t, s, nil)
	if err != nil {
		t.Fatalf("locktest: %v", err)
	}
	if test == nil {
		return // this process has played for another one
	}
	accepted, err := anomaliesOf(search.Accepts)
	if err != nil {
		t.Fatalf("locktest: %v", err)
	}
	bound, err := search.bound(test.cell)
	if err != nil {
		t.Fatalf("locktest: that can't be searched: %v", err)
	}
	kept, err := test.savedFindings()
	if err != nil {
		t.Fatalf("locktest: %v", err)
	}
	twice := false
	t.Run("search", func(t *testing.T) {
		t.Helper()
		if twice = strings.HasSuffix(t.Name(), "#01"); !twice {
			test.search(t, bound, kept, accepted, search.Exhaust)
		}
	})
	if twice {
		t.Fatalf("locktest: %s", test.calledTwice())
	}
}

// search plays what former searches have kept and, if that shows nothing, searches.
func (test *test) search(t *testing.T, bound explore.Bound, kept []*scenarios.Script, accepted []checker.Anomaly, exhaust bool) {
	t.Helper()
	player := &player{t: t, name: test.name, cell: test.cell}
	for _, script := range kept {
		test.playKept(t, script, accepted)
	}
	if t.Failed() {
		return
	}
	ctx, cancel := context.WithTimeout(t.Context(), test.settings.search)
	defer cancel()
	result, err := explore.Search(ctx, bound, player, func(explore.Result) {})
	if err != nil {
		t.Fatalf("locktest: %v", err)
	}
	for _, f := range result.Findings {
		if slices.Contains(accepted, f.Anomaly) {
			t.Logf("%s, which is accepted, after %d moves:\n\n%s", f.Anomaly, f.Moves, f.Script)
			continue
		}
		test.found(t, f)
	}
	for _, f := range result.Failures {
		t.Errorf("a schedule came to nothing: %s\n\n%s", explain(f.Err), f.Script)
		break // the first says it
	}
	said := fmt.Sprintf("%d states, %d of them ends; %d moves, %d runs; exhausted: %s", result.States, result.Ends, result.Moves, result.Runs, exhausted(result))
	if exhaust && !result.Exhausted {
		t.Errorf("not everything within the bound was seen: %s. %s=60s gives it more time.", said, envFor)
		return
	}
	t.Log(said)
}

func exhausted(r explore.Result) string {
	switch {
	case r.Exhausted:
		return "yes"
	case r.Cut != "":
		return "no, " + r.Cut
	}
	return "no, a schedule came to nothing"
}

// bound returns the search as package explore takes it.
func (s Search) bound(cell harness.Cell) (explore.Bound, error) {
	b := explore.Bound{
		Clients: s.Clients, Rounds: s.Rounds, Nodes: max(1, cell.Strategy.Nodes), Replicas: s.Faults[explore.Failover],
		TTL: cell.TTL, Varies: cell.Strategy.HistoryVaries != "", Extend: s.Extend, Reenter: s.Reenter, Retries: s.Retries, Budget: map[explore.Fault]int{},
	}
	if b.Clients == 0 {
		b.Clients = 2
	}
	if b.Rounds == 0 {
		b.Rounds = 1
	}
	if b.TTL == 0 {
		b.TTL = scenarios.Defaults().TTL
	}
	if s.Extend && !slices.Contains(cell.Strategy.Tags, strategies.TagExtending) {
		return b, errors.New("Extend is for locks that have a method Extend")
	}
	var known []string
	for _, f := range explore.Faults() {
		known = append(known, string(f))
	}
	for f, n := range s.Faults {
		switch {
		case !slices.Contains(known, string(f)):
			return b, fmt.Errorf("no fault is called %q%s", f, suggestion(string(f), known))
		case n < 0:
			return b, fmt.Errorf("%s can't happen %d times", f, n)
		}
		b.Budget[f] = n
	}
	if b.Clients < 1 || b.Clients > 26 || b.Rounds < 1 || b.Retries < 0 {
		return b, errors.New("give 1 to 26 Clients, 1 or more Rounds, and no fewer than 0 Retries")
	}
	return b, b.Check()
}

// dir is where the scripts of a test's findings are.
func (test *test) dir() string { return filepath.Join(filesDir, fileOf(test.name)) }

// found tells a finding and keeps its script.
func (test *test) found(t *testing.T, f explore.Finding) {
	t.Helper()
	file := filepath.Join(test.dir(), string(f.Anomaly)+".txt")
	kept := fmt.Sprintf("%s keeps it; it is played first the next time", file)
	if err := writeHere(file, []byte(f.Script)); err != nil {
		kept = fmt.Sprintf("it could not be kept: %v", err)
	}
	t.Errorf("%s, after %d moves and %d requests; %s:\n\n%s\nagain: %s=1 %s\n", f.Anomaly, f.Moves, f.Requests, kept, f.Script, envStory, goTest(test.name))
}

// savedFindings reads the scripts of former findings.
func (test *test) savedFindings() (list []*scenarios.Script, err error) {
	files, err := filepath.Glob(filepath.Join(test.dir(), "*.txt"))
	if err != nil {
		return nil, err
	}
	for _, file := range files {
		if info, err := os.Stat(file); err == nil && info.IsDir() {
			continue
		}
		script, err := readScript(file)
		if err != nil {
			return nil, err
		}
		list = append(list, script)
	}
	return list, nil
}

// playAccepting plays a cell and says what came of it, where some anomalies are no news.
func playAccepting(t *testing.T, cell harness.Cell, accepted []checker.Anomaly) (reports.Cell, harness.Outcome) {
	o := harness.Play(t, cell)
	told := cellresult.Cell(harness.Sim, cell, o)
	told.Expected, told.AtMost = accepted, true
	told.Settle()
	return told, o
}

// playKept plays the script of a former finding.
func (test *test) playKept(t *testing.T, script *scenarios.Script, accepted []checker.Anomaly) {
	t.Helper()
	cell := test.cell
	cell.Script = script
	file := filepath.Join(test.dir(), script.Key())
	if ok, why := cell.Applies(); !ok {
		t.Logf("%s, from a former search, can't be played with this lock any more: %s", file, why)
		return
	}
	told, o := playAccepting(t, cell, accepted)
	switch {
	case !told.Decided():
		t.Errorf("%s, from a former search, came to no verdict: %s", file, explain(told.Reason))
	case !told.AsExpected:
		t.Errorf("%s, from a former search, shows %s still.\n%s", file, list(told.Extra()), test.story(t, told, o.History))
	default:
		t.Logf("%s, from a former search, shows nothing more: remove it, or move it elsewhere and have Scripts play it from now on", file)
	}
}

// A player plays scripts in this process, and again in others.
type player struct {
	t    *testing.T
	name string // of the test that a process of its own is told
	cell harness.Cell
}

// Play implements [explore.Player].
func (p *player) Play(ctx context.Context, trials []explore.Trial) ([]explore.Outcome, error) {
	looks := make([]explore.Outcome, len(trials))
	next := make(chan int)
	var wg sync.WaitGroup
	for range min(len(trials), runtime.GOMAXPROCS(0)) {
		wg.Go(func() {
			for i := range next {
				looks[i] = p.playTrial(trials[i])
			}
		})
	}
	err := func() error {
		defer close(next)
		for i := range trials {
			select {
			case next <- i:
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		return nil
	}()
	wg.Wait()
	return looks, err
}

// playTrial plays one script.
func (p *player) playTrial(trial explore.Trial) explore.Outcome {
	cell := p.cell
	var err error
	if cell.Script, err = scenarios.Parse("found.txt", []byte(trial.Script)); err != nil {
		return explore.Outcome{Err: err.Error()}
	}
	return explore.Play(p.t, cell, trial)
}

// PlayAlone implements [explore.Player]: this program is started again, and comes to the same
// test.
func (p *player) PlayAlone(ctx context.Context, trial explore.Trial) (explore.Outcome, error) {
	elsewhere, err := playElsewhere(ctx, p.name, request{
		Scripts: []source{{"found", trial.Script}}, Tags: p.cell.Strategy.Tags, Trial: &trial,
	})
	if err != nil {
		return explore.Outcome{}, err
	}
	defer elsewhere.remove()
	a, _, err := elsewhere.answer(0)
	if err != nil {
		return explore.Outcome{Err: err.Error()}, nil
	}
	return *a.Outcome, nil
}
