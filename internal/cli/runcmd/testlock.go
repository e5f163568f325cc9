package runcmd

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
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
	"github.com/lockfault/lockfault/internal/explore"
	"github.com/lockfault/lockfault/internal/leases"
	"github.com/lockfault/lockfault/internal/shell"
	"github.com/lockfault/lockfault/internal/workerpool"
	"github.com/lockfault/lockfault/internal/worlds"
	"github.com/lockfault/lockfault/reports"
	"github.com/lockfault/lockfault/scenarios"
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
		Use:   "test STRATEGY",
		Short: "Test a lock with all scenarios and the standard searches",
		Long: `Play a lock under the library's scenarios, search its schedules with each kind of fault,
and say what was found: the bugs, each with the command that replays it, the weaknesses
that better locks of its class avoid, the number of known limitations, and what was not
tried. docs/leases.md says what is a bug.

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
  lockfault test my-lock --report report
  lockfault test --subject 'python3 my_lock.py'`,
		Args: func(cmd *cobra.Command, args []string) error {
			if cmd.Flags().Changed("subject") && len(args) == 0 {
				return nil
			}
			return kit.ExactArgs("the name of a strategy")(cmd, args)
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			o.StrategyNames = args
			return o.test(cmd, a)
		},
	}
	o.AddSelectFlags(pflag.NewFlagSet("", pflag.ContinueOnError)) // the argument selects
	flags := cmd.Flags()
	flags.IntVar(&o.jobs, "jobs", runtime.NumCPU(), "`number` of worker processes")
	flags.StringVar(&o.findings, "findings", "lockfault-findings", "`directory` for the scripts of findings")
	flags.StringVar(&o.page, "report", "", "`directory` for the report of the scenarios, with a page of each cell's story (default none)")
	flags.DurationVar(&o.span, "for", 200*time.Second, "real time after which the searches end without a verdict, ten times what they should take")
	flags.BoolVar(&o.verbose, "verbose", false, "print a line for each finished cell and search on standard error")
	o.AddFlags(cmd)
	return cmd
}

// test plays the scenarios and makes the searches.
func (o *testOptions) test(cmd *cobra.Command, a *kit.App) error {
	if cmd.Flags().Changed("report") && o.page == "" {
		return kit.Usage("--report is empty: name a directory, or leave it out")
	}
	if o.findings == "" {
		return kit.Usage("--findings is empty: name a directory")
	}
	if o.out = o.page; o.out == "" {
		temp, err := cells.MakeTraces()
		if err != nil {
			return err
		}
		defer temp.Remove() // a directory that cannot be removed now is removed by a later run
		o.out = filepath.Join(temp.Path(), "report")
	}
	began := time.Now()
	o.silent, o.formats = true, []string{kit.FormatTable}
	if err := o.run(cmd, a); err != nil {
		return err
	}
	v := verdict{lock: o.played[0], program: a.Program, o: o, words: o.subjectWords()}
	if _, err := reports.Scan(filepath.Join(o.out, reports.ResultsFile), func(c reports.Cell) error { v.add(c); return nil }); err != nil {
		return err
	}
	if v.why = o.unsearchable(); v.why == "" && v.leak != "" {
		v.why = "each schedule would leave a goroutine behind"
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

// subjectWords returns the flags that name the user's program; none for a strategy.
func (o *testOptions) subjectWords() []string {
	if o.Subject == nil {
		return nil
	}
	return o.SubjectFlags.FlagArgs()
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
	if lock.AnyNodes && lock.Nodes > 3 { // three are a majority and a minority, too, and have far fewer states
		lock.Nodes, here.Nodes, v.nodes = 3, 3, 3
	}
	base := explore.Bound{TTL: cmp.Or(o.TTL, scenarios.Defaults().TTL), Nodes: max(1, lock.Nodes), Lock: leases.LockOf(lock), Varies: lock.HistoryVaries != ""}
	singles, pairs := battery.Searches(base, lock.Tags)
	start, err := cells.StartWorker()
	if err != nil {
		return err
	}
	e := search.NewExplorer(&here, lock, o.jobs, workerpool.Options{Start: start, Limit: cells.LimitOf})
	defer e.Close()
	progress := kit.NewProgress(cmd.ErrOrStderr(), len(singles)+len(pairs))
	progress.Verbose = o.verbose
	progress.Begin()
	defer progress.Close()
	ctx, cancel := context.WithTimeout(cmd.Context(), o.span)
	defer cancel()
	all, err := battery.Run(ctx, append(singles, pairs...), e, func(s battery.Searched) {
		progress.Done++
		if progress.Verbose {
			progress.Print(fmt.Sprintf("search with %s: %s, %s; exhausted: %t", s, kit.Count(s.States, "state", "states"), kit.Count(s.Runs, "run", "runs"), s.Exhausted))
		}
		if progress.Due() {
			progress.Say(fmt.Sprintf("%d of %d searches, last with %s", progress.Done, progress.Total, s))
		}
	})
	v.battery, v.singles = all, len(singles)
	switch {
	case errors.Is(err, context.Canceled):
		return kit.Exit(kit.ExitInterrupted, errors.New("interrupted"))
	case errors.Is(err, context.DeadlineExceeded):
		v.late = fmt.Sprintf("the searches took longer than %v, and %d of %d were made: give more time with --for", o.span, len(all.Searched), progress.Total)
	case err != nil:
		return err
	}
	for _, f := range all.Findings {
		if f.Outcome != leases.Bug {
			continue
		}
		if err := os.MkdirAll(o.findings, 0o777); err != nil {
			return err
		}
		if err := os.WriteFile(v.file(f.Anomaly), []byte(f.Script), 0o666); err != nil {
			return err
		}
	}
	return nil
}

// A verdict is what the command test says of a lock.
type verdict struct {
	lock    strategies.Strategy
	program string
	o       *testOptions
	words   []string // flags that name the user's program
	class   leases.Class
	// cells counts the cells by verdict. First holds for each outcome and anomaly the first cell, and
	// limitations counts the anomalies of cells that are known limitations.
	cells       map[reports.Verdict]int
	first       map[leases.Outcome]map[checker.Anomaly]reports.Cell
	limitations int
	undecided   []reports.Cell
	leak, wait  string // warnings of a cell
	unjudged    string
	battery     battery.Result
	singles     int
	why         string // why there were no searches
	late        string // why not all were made
	nodes       int    // of the searches, if not those of the lock
}

// add takes a cell of the library.
func (v *verdict) add(c reports.Cell) {
	if v.cells == nil {
		v.cells, v.first = map[reports.Verdict]int{}, map[leases.Outcome]map[checker.Anomaly]reports.Cell{leases.Bug: {}, leases.Weakness: {}}
	}
	v.cells[c.Verdict]++
	v.class = cmp.Or(v.class, c.Class)
	v.leak, v.wait = cmp.Or(v.leak, c.Leak), cmp.Or(v.wait, c.LongWait())
	if c.Unjudged != nil && len(c.Unjudged.Events) > 0 {
		v.unjudged = cmp.Or(v.unjudged, c.Unjudged.Message)
	}
	if !c.Decided() {
		v.undecided = append(v.undecided, c)
	}
	for _, f := range c.Findings {
		if f.Outcome == leases.Limitation {
			v.limitations++
		} else if _, known := v.first[f.Outcome][f.Anomaly]; !known {
			v.first[f.Outcome][f.Anomaly] = c
		}
	}
}

// file returns the path of the script of a finding.
func (v *verdict) file(a checker.Anomaly) string {
	return filepath.Join(v.o.findings, search.ScriptName(v.lock.Name, a))
}

// A line is an anomaly with its reason and how to see it.
type verdictLine struct {
	anomaly checker.Anomaly
	reason  string
	replay  []string
}

// lines returns the anomalies with an outcome: those of scenarios, then those that only searches found.
func (v *verdict) lines(outcome leases.Outcome) (list []verdictLine) {
	for _, a := range checker.Anomalies() {
		if c, ok := v.first[outcome][a]; ok {
			i := slices.IndexFunc(c.Findings, func(f leases.Finding) bool { return f.Anomaly == a })
			list = append(list, verdictLine{a, c.Findings[i].Reason, v.trace(c.Scenario)})
			continue
		}
		i := slices.IndexFunc(v.battery.Findings, func(f battery.Finding) bool { return f.Anomaly == a && f.Outcome == outcome })
		if _, worse := v.first[leases.Bug][a]; i < 0 || worse {
			continue
		}
		line := verdictLine{a, v.battery.Findings[i].Reason, nil}
		if outcome == leases.Bug {
			line.replay = v.trace(v.file(a))
			if v.nodes > 0 {
				line.replay = append(line.replay, "--nodes", fmt.Sprint(v.nodes))
			}
		}
		list = append(list, line)
	}
	return list
}

// trace returns the command that replays a scenario with the lock.
func (v *verdict) trace(scenario string) []string {
	words := []string{v.program, "trace"}
	if v.words == nil {
		words = append(words, v.lock.Name)
	}
	return append(append(words, scenario), append(v.words, v.o.InWorld(v.o.Worlds[0])...)...)
}

// print writes the verdict, in ten lines or so.
func (v *verdict) print(w io.Writer, took time.Duration) {
	bugs, weak := v.lines(leases.Bug), v.lines(leases.Weakness)
	verdict := "no bug was found"
	if len(bugs) > 0 {
		verdict = kit.Count(len(bugs), "bug", "bugs")
	}
	class, declared := v.class, false
	if list := leases.Declared(v.lock.Tags); len(list) > 0 {
		class, declared = list[0], true
	}
	if class == "" {
		class, _ = leases.ClassOf(checker.History{}, leases.LockOf(v.lock))
	}
	taken := fmt.Sprintf("taken for a lock of the class %s", class)
	if !declared {
		taken += "; to declare another class, add its name to the lock's tags (docs/leases.md)"
	}
	fmt.Fprintf(w, "%s: %s\n", v.lock.Name, verdict)
	fmt.Fprintf(w, "%s\n", taken)
	for _, line := range bugs {
		fmt.Fprintf(w, "bug: %s: %s\n  %s\n", line.anomaly, line.reason, shell.Line(line.replay))
	}
	for _, line := range weak {
		fmt.Fprintf(w, "avoidable weakness: %s: %s\n", line.anomaly, line.reason)
		if line.replay != nil {
			fmt.Fprintf(w, "  %s\n", shell.Line(line.replay))
		}
	}
	if v.leak != "" {
		fmt.Fprintf(w, "warning: a goroutine outlives its client: %s; %s\n", v.leak, reports.LeakRemedy)
	}
	if v.wait != "" {
		fmt.Fprintf(w, "warning: %s\n", v.wait)
	}
	if v.unjudged != "" {
		fmt.Fprintf(w, "not judged on the server side: %s\n", v.unjudged)
	}
	fmt.Fprintf(w, "%s of the class %s; lockfault run --strategy %s lists them\n", kit.Count(v.limitations, "known limitation", "known limitations"), class, v.lock.Name)
	for _, c := range v.undecided {
		reason, _, _ := strings.Cut(c.Reason, "\n")
		fmt.Fprintf(w, "undecided: %s: %s\n", c.Scenario, reason)
	}
	if v.late != "" {
		fmt.Fprintf(w, "undecided: %s\n", v.late)
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
	states, cut := 0, []string{}
	for i, s := range v.battery.Searched {
		states += s.States
		if !s.Exhausted && i < v.singles {
			cut = append(cut, s.String())
		}
	}
	fmt.Fprintf(w, ", %s of %s", kit.Count(len(v.battery.Searched), "search", "searches"), kit.Count(states, "state", "states"))
	if len(cut) > 0 {
		fmt.Fprintf(w, "; not searched to the end: %s", strings.Join(cut, ", "))
	}
}

// status returns the exit status, or nil for status 0.
func (v *verdict) status() error {
	switch {
	case len(v.lines(leases.Bug)) > 0:
		return kit.Exit(kit.ExitDiffers, nil)
	case len(v.undecided) > 0 || v.late != "":
		return kit.Exit(kit.ExitUndecided, nil)
	}
	return nil
}
