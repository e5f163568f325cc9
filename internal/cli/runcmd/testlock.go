package runcmd

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/lockfault/lockfault/checker"
	"github.com/lockfault/lockfault/internal/battery"
	"github.com/lockfault/lockfault/internal/cli/cells"
	"github.com/lockfault/lockfault/internal/cli/kit"
	"github.com/lockfault/lockfault/internal/cli/search"
	"github.com/lockfault/lockfault/internal/cli/selection"
	"github.com/lockfault/lockfault/internal/handover"
	"github.com/lockfault/lockfault/internal/leases"
	"github.com/lockfault/lockfault/internal/workerpool"
	"github.com/lockfault/lockfault/internal/worlds"
	"github.com/lockfault/lockfault/reports"
	"github.com/lockfault/lockfault/strategies"
)

// testOptions holds the flags of the command test.
type testOptions struct {
	runOptions
	findings string        // the directory for the scripts of findings
	page     string        // the directory of the report; empty for none
	span     time.Duration // how long the searches may take
}

// NewTestCommand returns the command test.
func NewTestCommand(a *kit.App) *cobra.Command {
	var o testOptions
	cmd := &cobra.Command{
		Use:   "test STRATEGY|PACKAGE",
		Short: "Test a lock with all scenarios and the standard searches",
		Long: `Play a lock under the library's scenarios, search its schedules with each kind of fault,
and say what was found: the bugs, each with the command that replays it, the weaknesses
that better locks of its class avoid, the number of known limitations, and what was not
tried. docs/leases.md says what is a bug.

A Go package such as ./mylock is one with a function from strategies.Env to a lock: test
builds ./lockfault-mylock, which is lockfault with that lock, and goes on with it. Where
there are several, name one: ./mylock.NewMutex.

Searches take place in virtual time, and so does the rest unless --world says otherwise.
A search ends after a number of scripts, not after a time, so its result is the same on
each machine.

Exit status:
  0    no bug was found
  1    a bug was found
  2    nothing was tested: the command line is invalid
  3    no bug was found, but a scenario or a search came to no verdict
  130  interrupted`,
		Example: `  lockfault test my-lock
  lockfault test ./mylock
  lockfault test my-lock --report report
  lockfault test --subject 'python3 my_lock.py'`,
		Args: func(cmd *cobra.Command, args []string) error {
			if cmd.Flags().Changed("subject") && len(args) == 0 {
				return nil
			}
			return kit.ExactArgs("the name of a strategy, or a Go package")(cmd, args)
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := o.checkFlags(cmd, a); err != nil {
				return err
			}
			if len(args) > 0 && handover.IsPackage(args[0]) {
				return testPackage(cmd, a, args[0])
			}
			o.StrategyNames = args
			return o.test(cmd, a)
		},
	}
	o.AddSelectFlags(pflag.NewFlagSet("", pflag.ContinueOnError)) // the argument selects
	flags := cmd.Flags()
	flags.IntVar(&o.jobs, "jobs", runtime.NumCPU(), "`number` of worker processes")
	flags.StringVar(&o.findings, "findings", "lockfault-findings", "`directory` for the scripts of findings")
	flags.StringVar(&o.page, "report", "", "`directory` for the report of the scenarios, with a page of each cell's story (default none)")
	flags.DurationVar(&o.span, "for", 200*time.Second, "real time after which the searches end without a verdict")
	flags.BoolVar(&o.verbose, "verbose", false, "print a line for each finished cell and search on standard error")
	o.AddFlags(cmd)
	return cmd
}

// testPackage builds a program with the lock of a Go package, and goes on with that.
func testPackage(cmd *cobra.Command, a *kit.App, target string) error {
	taken := func(name string) bool { _, is := a.Everything.Lookup(name); return is }
	lock, err := handover.BuildLock(cmd.Context(), target, taken, cmd.ErrOrStderr())
	if err != nil {
		return kit.Interrupted(kit.Exit(kit.ExitUsage, err), "interrupted")
	}
	status, err := lock.Run(target)
	if err != nil {
		return err
	}
	return kit.Exit(status, nil)
}

// checkFlags returns an error if a flag of the command is invalid, whatever the lock.
func (o *testOptions) checkFlags(cmd *cobra.Command, a *kit.App) error {
	if cmd.Flags().Changed("report") && o.page == "" {
		return kit.Usage("--report is empty: name a directory, or leave it out")
	}
	changed := cmd.Flags().Changed
	if err := cmp.Or(
		kit.UsageIf(o.findings == "", "--findings is empty: name a directory"),
		kit.UsageIf(o.span <= 0, "--for %v leaves no time: give some, such as 10m", o.span),
		kit.UsageIf(changed("expect"), "--expect: test judges a lock by its class: use run with --expect"),
		kit.UsageIf(len(o.Worlds) > 1, "--world names %d worlds: test plays in one", len(o.Worlds)),
	); err != nil {
		return err
	}
	if len(cmd.Flags().Args()) > 0 && changed("subject") {
		return kit.Usage("%q and --subject name two locks: leave one of them out", cmd.Flags().Arg(0))
	}
	if o.out = o.page; o.out == "" {
		o.out = "report" // a name for the checks: it is replaced
	}
	o.silent, o.formats = true, []string{kit.FormatTable}
	return o.check(cmd, a)
}

// test plays the scenarios and makes the searches.
func (o *testOptions) test(cmd *cobra.Command, a *kit.App) error {
	if len(o.StrategyNames) > 0 {
		registry, err := o.Registry(cmd, a)
		if err != nil {
			return err
		}
		list, err := selection.ChooseStrategies(a, registry, o.StrategyNames)
		if err != nil {
			return err
		}
		if len(list) > 1 {
			return kit.Usage("%q names %d strategies: name one", o.StrategyNames[0], len(list))
		}
	}
	if o.page == "" {
		temp, err := cells.MakeTraces()
		if err != nil {
			return err
		}
		defer temp.Remove() // a directory that cannot be removed now is removed by a later run
		o.out = filepath.Join(temp.Path(), "report")
	}
	began := time.Now()
	if err := o.run(cmd, a); err != nil {
		return err
	}
	v := verdict{lock: o.played[0], o: o, notes: &runNotes{program: a.Program, o: &o.Settings}}
	if _, err := reports.Scan(filepath.Join(o.out, reports.ResultsFile), func(c reports.Cell) error { v.add(c); return nil }); err != nil {
		return err
	}
	v.why = o.unsearchable()
	if v.cells[reports.Held]+v.cells[reports.Violated] == 0 {
		v.why = "no scenario came to a verdict"
	}
	if v.why == "" {
		if err := o.search(cmd, &v); err != nil {
			return err
		}
	}
	v.print(cmd.OutOrStdout(), time.Since(began))
	if o.page != "" {
		fmt.Fprintf(cmd.OutOrStdout(), "report: %s\n", filepath.Join(o.page, reports.HTMLFile))
	}
	return v.status()
}

// unsearchable says why no schedules of the lock can be searched; empty if they can.
func (o *testOptions) unsearchable() string {
	switch lock := o.played[0]; {
	case lock.Program != nil:
		return "its program runs in real time"
	case lock.RunsOn() != strategies.Redis:
		return "searches need the simulation, and it has no " + lock.RunsOn()
	}
	return ""
}

// search makes the searches of the battery, and keeps the scripts of what they find.
func (o *testOptions) search(cmd *cobra.Command, v *verdict) error {
	lock := o.played[0]
	here := o.Settings
	here.Worlds = []string{worlds.Sim}
	if lock.AnyNodes && lock.Nodes > 3 && o.Nodes == 0 { // three are a majority and a minority, too, and have far fewer states
		lock.Nodes, here.Nodes, v.nodes = 3, 3, 3
	}
	list := battery.Searches(lock, o.TTL)
	if err := kit.MakeOut(o.findings); err != nil { // before the searches, whose findings would be lost
		return kit.Usage("--findings: %v", err)
	}
	defer os.Remove(o.findings) // unless there is something in it
	start, err := cells.StartWorker()
	if err != nil {
		return err
	}
	e := search.NewExplorer(&here, lock, o.jobs, workerpool.Options{Start: start, Limit: cells.LimitOf})
	defer e.Close()
	progress := kit.NewProgress(cmd.ErrOrStderr(), len(list))
	progress.Verbose = o.verbose
	progress.Begin()
	defer progress.Close()
	ctx, cancel := context.WithTimeout(cmd.Context(), o.span)
	defer cancel()
	all, err := battery.Run(ctx, list, e, func(s battery.Searched) {
		progress.Done++
		if progress.Verbose {
			progress.Print(fmt.Sprintf("search with %s: %s, %s; exhausted: %t", s, kit.Count(s.States, "state", "states"), kit.Count(s.Runs, "run", "runs"), s.Exhausted))
		}
		if progress.Due() {
			progress.Say(fmt.Sprintf("%d of %d searches, last with %s", progress.Done, progress.Total, s))
		}
	})
	v.battery = all
	if errors.Is(err, context.DeadlineExceeded) {
		v.doubts = append(v.doubts, fmt.Sprintf("the searches took longer than %v, and %d of %d were made: give more time with --for", o.span, len(all.Searched), len(list)))
	} else if err != nil {
		return kit.Interrupted(err, "interrupted")
	}
	if f, in := all.Failure(); f != nil {
		reason, _, _ := strings.Cut(f.Err, "\n")
		v.doubts = append(v.doubts, fmt.Sprintf("a script of the search with %s came to no verdict: %s", in, reason))
	}
	if all.Stopped {
		v.doubts = append(v.doubts, fmt.Sprintf("the searches stopped after %d scripts without a verdict, and %d of %d were made", all.Failures(), len(all.Searched), len(list)))
	}
	v.leak = cmp.Or(v.leak, all.Leak())
	for _, f := range all.Findings {
		// The script of a bug is kept even if a scenario shows it, that of a weakness only if none does.
		_, worse := v.first[leases.Bug][f.Anomaly]
		if _, known := v.first[f.Outcome][f.Anomaly]; f.Outcome != leases.Bug && (f.Outcome != leases.Weakness || known || worse) {
			continue
		}
		if err := kit.WriteOut(o.findings, search.ScriptName(lock.Name, f.Anomaly), []byte(f.Script)); err != nil {
			return err
		}
	}
	return nil
}

// A verdict is what the command test says of a lock.
type verdict struct {
	lock  strategies.Strategy
	o     *testOptions
	notes *runNotes // makes commands
	class leases.Class
	// cells counts the cells by verdict. First holds for each outcome and anomaly the first cell, and
	// limitations counts the anomalies of cells that are known limitations.
	cells       map[reports.Verdict]int
	first       map[leases.Outcome]map[checker.Anomaly]reports.Cell
	limitations int
	undecided   undecided
	doubts      []string     // why a search came to no verdict
	leak        string       // a goroutine that outlives its client
	longest     reports.Cell // with the longest wait for a free lock
	unjudged    string
	battery     battery.Result
	why         string // why there were no searches
	nodes       int    // of the searches, if not those of the lock
}

// add takes a cell of the library.
func (v *verdict) add(c reports.Cell) {
	if v.cells == nil {
		v.cells, v.first = map[reports.Verdict]int{}, map[leases.Outcome]map[checker.Anomaly]reports.Cell{leases.Bug: {}, leases.Weakness: {}}
	}
	v.cells[c.Verdict]++
	v.class = cmp.Or(v.class, c.Class)
	v.leak = cmp.Or(v.leak, c.Leak)
	if c.LongWait() != "" && (v.longest.FreeWaits == nil || c.FreeWaits.Undisturbed > v.longest.FreeWaits.Undisturbed) {
		v.longest = c
	}
	if c.Unjudged != nil && len(c.Unjudged.Events) > 0 {
		v.unjudged = cmp.Or(v.unjudged, c.Unjudged.Message)
	}
	if !c.Decided() {
		reason, _, _ := strings.Cut(c.Reason, "\n")
		v.undecided.add(c.Scenario, clientNamed.ReplaceAllString(reason, "a client: "))
	}
	for _, f := range c.Findings {
		if f.Outcome == leases.Limitation {
			v.limitations++
		} else if _, known := v.first[f.Outcome][f.Anomaly]; !known {
			v.first[f.Outcome][f.Anomaly] = c
		}
	}
}

// clientNamed matches the client in the reason of a cell: a lock that cannot be made fails with another
// client in another scenario.
var clientNamed = regexp.MustCompile(`client [A-Z]: `)

// undecided holds the scenarios without a verdict, by reason, in the order in which they came.
type undecided struct {
	reasons   []string
	scenarios map[string][]string
}

func (u *undecided) add(scenario, reason string) {
	if u.scenarios == nil {
		u.scenarios = map[string][]string{}
	}
	if len(u.scenarios[reason]) == 0 {
		u.reasons = append(u.reasons, reason)
	}
	u.scenarios[reason] = append(u.scenarios[reason], scenario)
}

// lines returns a line for each reason.
func (u *undecided) lines() (list []string) {
	for _, reason := range u.reasons {
		names := u.scenarios[reason]
		text := names[0]
		if n := len(names) - 1; n > 0 {
			text += fmt.Sprintf(" and %s", kit.Count(n, "other scenario", "other scenarios"))
		}
		list = append(list, text+": "+reason)
	}
	return list
}

// A verdictLine is one or more anomalies with their reason and the command that shows the first.
type verdictLine struct{ anomalies, reason, shown string }

// lines returns the anomalies with an outcome: those of scenarios, and those that only searches found.
func (v *verdict) lines(outcome leases.Outcome) (list []verdictLine) {
	add := func(a checker.Anomaly, reason, shown string) {
		if last := len(list) - 1; last >= 0 && list[last].reason == reason {
			list[last].anomalies += ", " + string(a)
			return
		}
		list = append(list, verdictLine{string(a), reason, shown})
	}
	for _, a := range checker.Anomalies() {
		if c, ok := v.first[outcome][a]; ok {
			i := slices.IndexFunc(c.Findings, func(f leases.Finding) bool { return f.Anomaly == a })
			add(a, c.Findings[i].Reason, v.notes.traceOf(c))
			continue
		}
		i := slices.IndexFunc(v.battery.Findings, func(f battery.Finding) bool { return f.Anomaly == a && f.Outcome == outcome })
		if _, worse := v.first[leases.Bug][a]; i < 0 || worse {
			continue
		}
		shown := v.notes.traceOf(reports.Cell{World: worlds.Sim, Strategy: v.lock.Name, Scenario: filepath.Join(v.o.findings, search.ScriptName(v.lock.Name, a))})
		if v.nodes > 0 {
			shown += fmt.Sprintf(" --nodes %d", v.nodes)
		}
		add(a, v.battery.Findings[i].Reason, shown)
	}
	return list
}

// print writes the verdict, in ten lines or so.
func (v *verdict) print(w io.Writer, took time.Duration) {
	bugs, weak := v.lines(leases.Bug), v.lines(leases.Weakness)
	verdict := "no bug was found"
	switch {
	case len(bugs) > 0:
		verdict = kit.Count(len(bugs), "bug", "bugs")
	case v.cells[reports.Held]+v.cells[reports.Violated] == 0:
		verdict = "no scenario came to a verdict"
	}
	class, declared := v.class, false
	if list := leases.Declared(v.lock.Tags); len(list) > 0 {
		class, declared = list[0], true
	}
	if class == "" {
		class, _ = leases.ClassOf(checker.History{}, leases.LockOf(v.lock))
	}
	taken := fmt.Sprintf("taken for a lock of the class %s; to declare another class, add its name to the lock's tags (docs/leases.md)", class)
	if declared {
		taken = fmt.Sprintf("judged as a lock of the class %s, which it declares (docs/leases.md)", class)
	}
	fmt.Fprintf(w, "%s: %s\n", v.lock.Name, verdict)
	fmt.Fprintf(w, "%s\n", taken)
	for _, line := range bugs {
		fmt.Fprintf(w, "bug: %s: %s\n  %s\n", line.anomalies, line.reason, line.shown)
	}
	for _, line := range weak {
		fmt.Fprintf(w, "avoidable weakness: %s: %s\n  %s\n", line.anomalies, line.reason, line.shown)
	}
	if v.leak != "" {
		fmt.Fprintf(w, "warning: a goroutine outlives its client: %s; %s\n", v.leak, reports.LeakRemedy)
	}
	if wait := v.longest.LongWait(); wait != "" {
		fmt.Fprintf(w, "warning: under %s %s\n", v.longest.Scenario, wait)
	}
	if v.unjudged != "" {
		fmt.Fprintf(w, "not judged on the server side: %s\n", v.unjudged)
	}
	fmt.Fprintf(w, "%s of the class %s; the page of --report explains each\n", kit.Count(v.limitations, "known limitation", "known limitations"), class)
	for _, doubt := range append(v.undecided.lines(), v.doubts...) {
		fmt.Fprintf(w, "undecided: %s\n", doubt)
	}
	fmt.Fprintf(w, "tried: %s", kit.Count(v.cells[reports.Held]+v.cells[reports.Violated], "scenario", "scenarios"))
	if n := v.cells[reports.NotApplicable]; n > 0 {
		fmt.Fprintf(w, " (%d others do not apply)", n)
	}
	v.printSearches(w)
	fmt.Fprintf(w, "; %.0fs\n", took.Seconds())
}

// printSearches writes how many searches there were, and which were not exhausted.
func (v *verdict) printSearches(w io.Writer) {
	if v.why != "" {
		fmt.Fprintf(w, ", and no searches: %s", v.why)
		return
	}
	fmt.Fprintf(w, ", %s of %s", kit.Count(len(v.battery.Searched), "search", "searches"), kit.Count(v.battery.States(), "state", "states"))
	if cut := v.battery.Unfinished(); cut != "" && len(v.doubts) == 0 {
		fmt.Fprintf(w, ", %s", cut)
	}
}

// status returns the exit status, or nil for status 0.
func (v *verdict) status() error {
	switch {
	case len(v.lines(leases.Bug)) > 0:
		return kit.Exit(kit.ExitDiffers, nil)
	case len(v.doubts) > 0 || len(v.undecided.reasons) > 0:
		return kit.Exit(kit.ExitUndecided, nil)
	}
	return nil
}
