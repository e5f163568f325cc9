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
	"github.com/lockfault/lockfault/internal/leases"
	"github.com/lockfault/lockfault/reports"
	"github.com/lockfault/lockfault/scenarios"
	"github.com/lockfault/lockfault/strategies"
)

// Fault is a kind of fault in a [Search]. The kinds are "advance" (time passes to the end of a
// lease), "crash", "pause", "lose-reply", "failover" and more, which docs/explore.md lists.
type Fault = explore.BudgetKind

// Search sets the bound of [Explore].
type Search struct {
	// Clients is the number of clients; 0 means 2. Rounds is the number of rounds of each client; 0
	// means 1. In a round a client tries to acquire the lock, writes and releases.
	Clients, Rounds int
	// Faults is the maximum number of faults of each kind; other kinds do not occur.
	Faults map[Fault]int
	// Extend lets a holder extend its lease once. Reenter lets a holder try to acquire the lock
	// again.
	Extend, Reenter bool
	// Retries is the number of retries of a command without a reply, by the clients' library.
	Retries int
	// Accepts lists the anomalies that the lock may show although they are bugs. Known limitations
	// and avoidable weaknesses of the lock's class need not be listed.
	Accepts []string
	// Exhaust makes the test fail if the search did not reach every state within the bound.
	Exhaust bool
}

// Explore searches for the shortest schedule with an anomaly that is a bug and not accepted, as
// lockfault explore does; docs/leases.md says what is a bug. Explore covers all orders in which the clients' requests can reach the servers,
// with the faults of the search. Explore runs each finding again in a separate process, and saves
// the finding as a script in a directory with the test's name below testdata/lockfault. The next
// call runs the saved scripts first, and searches only if none of them shows an anomaly.
//
// A test calls Explore once, since the separate process is identified by the test's name.
func Explore(t *testing.T, s Subject, search Search) {
	t.Helper()
	test, err := prepare(t, s, nil)
	if err != nil {
		t.Fatalf("locktest: %v", err)
	}
	if test == nil {
		return // this process was started for another process and has finished
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

// search runs the scripts of earlier findings and, if none of them fails, searches.
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
		judged := leases.Finding{Anomaly: f.Anomaly, Outcome: f.Outcome, Reason: f.Reason}
		switch {
		case f.Outcome != leases.Bug:
			t.Log(judged)
		case slices.Contains(accepted, f.Anomaly):
			t.Logf("%s; it is accepted; a schedule of %d moves:\n\n%s", judged, f.Moves, f.Script)
		default:
			test.found(t, f, judged)
		}
	}
	if result.Leak != "" {
		t.Errorf("A goroutine outlives its client: %s; %s.", result.Leak, reports.LeakRemedy)
	}
	for _, f := range result.Failures {
		t.Errorf("a schedule had no verdict: %s\n\n%s", explain(f.Err), f.Script)
		break // the first failure is enough
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
	return "no, a schedule had no verdict"
}

// bound converts the search to the type of package explore.
func (s Search) bound(cell harness.Cell) (explore.Bound, error) {
	b := explore.Bound{
		Clients: s.Clients, Rounds: s.Rounds, Nodes: max(1, cell.Strategy.Nodes), Replicas: s.Faults[explore.Failover],
		TTL: cell.TTL, Varies: cell.Strategy.HistoryVaries != "", Extend: s.Extend, Reenter: s.Reenter, Retries: s.Retries, Lock: leases.LockOf(cell.Strategy), Budget: map[explore.BudgetKind]int{},
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
	for _, f := range explore.BudgetKinds() {
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

// dir returns the directory of the scripts of a test's findings.
func (test *test) dir() string { return filepath.Join(filesDir, fileOf(test.name)) }

// found reports a finding and saves its script.
func (test *test) found(t *testing.T, f explore.Finding, judged leases.Finding) {
	t.Helper()
	file := filepath.Join(test.dir(), string(f.Anomaly)+".txt")
	kept := fmt.Sprintf("%s keeps it; it is played first the next time", file)
	if err := writeHere(file, []byte(f.Script)); err != nil {
		kept = fmt.Sprintf("it could not be kept: %v", err)
	}
	t.Errorf("%s; a schedule of %d moves and %d requests; %s:\n\n%s\nagain: %s=1 %s\n", judged, f.Moves, f.Requests, kept, f.Script, envStory, goTest(test.name))
}

// savedFindings reads the scripts of earlier findings.
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

// playAccepting runs a cell and returns its result. Expected are the anomalies that are no bugs by the
// lock's class, and a list of accepted bugs.
func playAccepting(t *testing.T, cell harness.Cell, accepted []checker.Anomaly) (reports.Cell, harness.Outcome) {
	o := harness.Play(t, cell)
	told := cellresult.Cell(harness.Sim, cell, o)
	told.Expected, told.AtMost = append(leases.Excused(told.Findings), accepted...), true
	told.Settle()
	return told, o
}

// playKept runs the script of an earlier finding.
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

// player runs scripts in this process and in separate processes.
type player struct {
	t    *testing.T
	name string // of the test, which a separate process must run
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

// playTrial runs one script.
func (p *player) playTrial(trial explore.Trial) explore.Outcome {
	cell := p.cell
	var err error
	if cell.Script, err = scenarios.Parse("found.txt", []byte(trial.Script)); err != nil {
		return explore.Outcome{Err: err.Error()}
	}
	return explore.Play(p.t, cell, trial)
}

// PlayAlone implements [explore.Player]: it starts this program again, which runs the same test.
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
