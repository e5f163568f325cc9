package locktest

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/lockfault/lockfault/checker"
	"github.com/lockfault/lockfault/internal/cellresult"
	"github.com/lockfault/lockfault/internal/harness"
	"github.com/lockfault/lockfault/internal/leases"
	"github.com/lockfault/lockfault/internal/racetest"
	"github.com/lockfault/lockfault/internal/vtime"
	"github.com/lockfault/lockfault/reports"
	"github.com/lockfault/lockfault/scenarios"
	"github.com/lockfault/lockfault/strategies"
)

// Run runs scenarios against the lock, each as a subtest: the library's scenarios and those of
// [Scripts]. Then the subtest search searches the lock's schedules with each kind of fault, as lockfault
// test does; with -short, or with the option [Only], it does not, nor if a scenario failed. A finding of a search is saved as a
// script, as by [Explore]. A subtest fails
//
//   - if the lock shows an anomaly that the options do not allow: see [Survives] and [Accepts];
//   - without an option for the scenario, if the lock shows an unexpected anomaly. The file of an
//     earlier run with LOCKFAULT_ACCEPT=1 lists the expected anomalies, or else the scenario's
//     expectations for locks of this kind;
//   - if a search shows a bug with an anomaly that the test accepts under no scenario;
//   - if the lock panics, ignores its context or stops virtual time.
//
// The test as a whole fails if the lock leaves goroutines running, and names each of them once. A scenario that does not apply to the lock is skipped.
func Run(t *testing.T, s Subject, opts ...Option) {
	t.Helper()
	test, err := prepare(t, s, opts)
	if err != nil {
		t.Fatalf("locktest: %v", err)
	}
	if test == nil {
		return // this process was started for another process and has finished
	}
	twice := false
	for _, script := range test.options.scripts {
		t.Run(script.Key(), func(t *testing.T) {
			t.Helper()
			if twice = twice || strings.HasSuffix(t.Name(), "#01"); twice {
				t.Skip("played by another call in the same test")
			}
			test.play(t, script)
		})
	}
	if twice {
		t.Fatalf("locktest: %s", test.calledTwice())
	}
	if test.options.whole && !testing.Short() && !t.Failed() && test.leak() == "" { // what scenarios show is mended first
		t.Run("search", func(t *testing.T) {
			t.Helper()
			racetest.Skip(t)
			test.searchAll(t)
		})
	}
	if err := test.finish(t); err != nil {
		t.Errorf("locktest: %v", err)
	}
}

// leak returns a goroutine of the lock that outlived its client; empty if there was none.
func (test *test) leak() string {
	for _, o := range test.played {
		if o.cell.Leak != "" {
			return o.cell.Leak
		}
	}
	return ""
}

// calledTwice returns the error text for a test that calls this package more than once.
func (test *test) calledTwice() string {
	return test.name + " calls this package twice, and their scenarios and files would have one name: give each a subtest, with t.Run"
}

// test holds the state of one call of Run.
type test struct {
	name     string // of the T
	settings settings
	options  *options
	cell     harness.Cell // without a script
	ratchet  *expectFile
	played   []outcome
	stuck    string // the scenario in which virtual time stopped; the remaining scenarios are skipped
	observed leases.Observed
}

// outcome holds the result of one scenario.
type outcome struct {
	script  *scenarios.Script
	cell    reports.Cell
	history checker.History
}

// prepare reads the options and determines the kind of the lock. prepare returns nil if this
// process was started for another process and has finished.
func prepare(t *testing.T, s Subject, opts []Option) (*test, error) {
	if vtime.Current() != "" {
		return nil, fmt.Errorf("this is called in a bubble of testing/synctest: call it outside, it makes bubbles of its own")
	}
	quietRedis()
	settings, err := readSettings()
	if err != nil {
		return nil, err
	}
	options, err := read(opts)
	if err != nil {
		return nil, err
	}
	strategy, err := s.strategy(t)
	if err != nil {
		return nil, err
	}
	test := &test{name: t.Name(), settings: settings, options: options}
	test.cell = harness.Cell{Strategy: strategy, Seed: settings.seed, TTL: s.TTL, Limit: settings.limit(t)}
	if file := os.Getenv(envTrial); file != "" {
		return nil, serve(t, test.cell, file)
	}
	if test.ratchet, err = readRatchet(t, strategy.Name, options); err != nil {
		return nil, err
	}
	if err := test.observe(t); err != nil {
		return nil, fmt.Errorf("the lock doesn't work: %w", err)
	}
	test.cell.Strategy.Expected = map[string][]string{}
	for key, p := range options.promises {
		test.cell.Strategy.Expected[key] = anomalyNames(p.may)
	}
	return test, nil
}

// perform runs a script, in this process or in a separate process.
func (test *test) perform(t *testing.T, script *scenarios.Script) (reports.Cell, checker.History, error) {
	if !test.settings.isolate {
		cell := test.cell
		cell.Script = script
		o := harness.Play(t, cell)
		return cellresult.Cell(harness.Sim, cell, o), o.History, nil
	}
	trial, err := playElsewhere(t.Context(), test.name, request{Scripts: []source{sourceOf(script)}, Tags: test.cell.Strategy.Tags})
	if err != nil {
		return reports.Cell{}, checker.History{}, err
	}
	defer trial.remove()
	a, h, err := trial.answer(0)
	if err != nil {
		a.Cell = reports.Cell{World: harness.Sim, Strategy: test.cell.Strategy.Name, Scenario: script.Name, Verdict: reports.Error, Reason: err.Error()}
	}
	return a.Cell, h, nil
}

// play runs one scenario and reports its result to t.
func (test *test) play(t *testing.T, script *scenarios.Script) {
	t.Helper()
	cell := test.cell
	cell.Script = script
	promise, promised := test.options.promises[script.Key()]
	if ok, why := cell.Applies(); !ok {
		if promised {
			t.Fatalf("%s can't be played with this lock, but the test speaks of it in %s: %s", script.Key(), promise.by, why)
		}
		test.add(script, cellresult.Cell(harness.Sim, cell, harness.Outcome{Status: harness.NotApplicable, Reason: why}), checker.History{})
		t.Skip(why)
	}
	if test.stuck != "" {
		t.Skipf("virtual time stood still in %s", test.stuck)
	}
	told, history, err := test.perform(t, script)
	if err != nil {
		t.Fatalf("locktest: %v", err)
	}
	if strings.HasPrefix(told.Reason, "virtual time stood still") {
		test.stuck = script.Key()
	}
	file := test.ratchet.said
	if promised { // the test's options have priority over the file
		file = nil
	}
	cellresult.Expect(&told, cell, file)
	told.AtMost = true
	if told.Settle(); told.NotBetter != nil {
		told.Reference = test.reference(t, script)
		told.Settle()
	}
	test.add(script, told, history)
	switch {
	case !told.Decided():
		t.Errorf("%s came to no verdict: %s%s", script.Key(), explain(told.Reason), test.reproCommand(t))
		return
	case !told.AsExpected && (promised || !test.settings.accept):
		t.Errorf("%s%s\n%s", test.failureText(told, script, promise), test.hints(told, script, history), test.story(t, told, history))
		return
	}
	t.Logf("%s: %s", script.Key(), passed(told))
	if test.settings.story {
		t.Log("\n" + whole(told, history))
	}
	if test.cell.Strategy.HistoryVaries == "" && !testing.Short() && !test.settings.isolate {
		test.compare(t, script, told, history)
	}
}

// reference returns what the reference lock of the class does under a script; nil if there is none.
func (test *test) reference(t *testing.T, script *scenarios.Script) *reports.ReferenceLock {
	cell := test.cell
	lock, refuses, ok := cellresult.Reference(cell.Strategy, strategies.Builtin())
	if !ok {
		return nil
	}
	cell.Strategy, cell.Script = lock, script
	other := cellresult.Cell(harness.Sim, cell, harness.Play(t, cell))
	if other.Verdict != reports.Held && other.Verdict != reports.Violated {
		return nil
	}
	return &reports.ReferenceLock{Strategy: lock.Name, Refuses: refuses, Acquires: other.Acquires}
}

// add appends the result of a scenario.
func (test *test) add(script *scenarios.Script, cell reports.Cell, history checker.History) {
	cell.Settle()
	test.played = append(test.played, outcome{script, cell, history})
}

// compare runs a scenario again and reports differences: one run cannot judge a lock whose result
// varies.
func (test *test) compare(t *testing.T, script *scenarios.Script, first reports.Cell, history checker.History) {
	t.Helper()
	second, again, err := test.perform(t, script)
	second.Settle()
	switch {
	case err != nil || !second.Decided():
		t.Errorf("played again, it came to no verdict: %s\n%s", explain(second.Reason), varying)
	case !slices.Equal(first.Anomalies, second.Anomalies):
		t.Errorf("played again with the same seed, it showed %s, and %s before.\n%s", list(second.Anomalies), list(first.Anomalies), varying)
	case !slices.Equal(history.Events, again.Events):
		t.Logf("played again with the same seed, it did not do quite the same. %s", varying)
	}
}

// compareTogether runs all scenarios again in one separate process, and reports the first scenario
// whose result differs from its result in isolation.
func (test *test) compareTogether(t *testing.T) error {
	t.Helper()
	r := request{Tags: test.cell.Strategy.Tags}
	var alone []outcome
	for _, o := range test.played {
		if o.cell.Verdict == reports.Held || o.cell.Verdict == reports.Violated {
			alone = append(alone, o)
			r.Scripts = append(r.Scripts, sourceOf(o.script))
		}
	}
	if len(alone) < 2 || test.cell.Strategy.HistoryVaries != "" {
		return nil
	}
	trial, err := playElsewhere(t.Context(), test.name, r)
	if err != nil {
		return err
	}
	defer trial.remove()
	for i, o := range alone {
		a, h, err := trial.answer(i)
		switch {
		case err != nil:
			t.Errorf("%s, played in one process with those before it: %s\n%s", o.script.Key(), explain(err.Error()), shared)
			return nil
		case !slices.Equal(h.Events, o.history.Events):
			shows := fmt.Sprintf("it shows %s, and %s alone", list(a.Cell.Anomalies), list(o.cell.Anomalies))
			if slices.Equal(a.Cell.Anomalies, o.cell.Anomalies) {
				shows = "what goes wrong is the same, but not how"
			}
			t.Errorf("%s does something else when other scenarios were played before it in the same process: %s.\n%s", o.script.Key(), shows, shared)
			return nil
		}
	}
	return nil
}

const shared = "The lock keeps something in variables of its package from one scenario to the next, or draws from a source other than Env.Rand."

const varying = "The lock keeps something in variables of its package, or draws from a source other than Env.Rand. " +
	"LOCKFAULT_ISOLATE=1 plays each scenario in a process of its own."

// finish writes the summary, the expectations and the report after all scenarios have run.
func (test *test) finish(t *testing.T) error {
	t.Helper()
	if len(test.played) == 0 {
		return nil // because of -run
	}
	t.Log(test.summary())
	if test.observed.Overstay > 0 {
		t.Errorf("Acquire ignores its context: for a lock that was taken, it returned %v after the context was done. Let Acquire return when its context is done.", test.observed.Overstay)
	}
	for i, o := range test.played {
		if leak := o.cell.Leak; leak != "" && !slices.ContainsFunc(test.played[:i], func(o outcome) bool { return o.cell.Leak == leak }) {
			t.Errorf("A goroutine outlives its client, first in %s: %s; %s. Everything else was judged nevertheless.", o.script.Key(), leak, reports.LeakRemedy)
		}
	}
	longest := test.played[0]
	for _, o := range test.played {
		if o.cell.LongWait() != "" && (longest.cell.LongWait() == "" || o.cell.FreeWaits.Undisturbed > longest.cell.FreeWaits.Undisturbed) {
			longest = o
		}
	}
	if text := longest.cell.LongWait(); text != "" {
		t.Logf("%s: %s", longest.script.Key(), text)
	}
	if test.settings.isolate {
		if err := test.compareTogether(t); err != nil {
			return err
		}
	}
	if test.settings.accept {
		if err := test.ratchet.accept(t, test); err != nil {
			return err
		}
	}
	if test.settings.out == "" {
		return nil
	}
	return test.report(t)
}
