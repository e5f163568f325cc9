// Package runcmd is the command run: it plays a selection of cells, compares them with expectations and
// a baseline, and writes the report.
package runcmd

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/lockfault/lockfault/checker"
	"github.com/lockfault/lockfault/internal/atomicdir"
	"github.com/lockfault/lockfault/internal/cli/cells"
	"github.com/lockfault/lockfault/internal/cli/kit"
	"github.com/lockfault/lockfault/internal/cli/selection"
	"github.com/lockfault/lockfault/reports"
	"github.com/lockfault/lockfault/scenarios"
	"github.com/lockfault/lockfault/strategies"
)

type runOptions struct {
	cells.Settings
	selection.Flags
	scenarios []string
	jobs      int
	formats   []string
	forms     []chosenForm
	out       string
	costs     string
	baseline  string
	resume    bool
	accept    bool
	quiet     bool
	verbose   bool
	failOn    string
	// silent prints nothing: the command test says what came out.
	silent bool
	// played holds the strategies as they were played, with the tags that were observed.
	played []strategies.Strategy
}

func NewCommand(a *kit.App) *cobra.Command {
	var o runOptions
	cmd := &cobra.Command{
		Use:   "run",
		Short: "Play strategies under scenarios and compare them",
		Long: `Play the selected strategies under the selected scenarios (default: all), print the
comparison and write the report: index.html, report.md, results.json, and the history of
each cell as JSON lines. The report replaces the previous report when it is complete.
Until then the finished cells are stored next to the previous report, and --resume
continues with the missing cells.

The scenario defines the expected result of each cell; for a lock of your own under a scenario of
the library its class does (docs/leases.md). A file of --expect replaces these
expectations: the file lists the anomalies that each lock may show. --accept writes the
anomalies of this run into that file.`,
		Example: `  lockfault run
  lockfault run --strategy my-lock --expect locks.expect --accept
  lockfault run --strategy redlock,'set-nx-*' --scenario gc-pause-holding
  lockfault run --scenario ./mine.txt --seed 7 --ttl 10s --format json
  lockfault run --scenario contention,./scripts/  # and all scripts in there`,
		Args: kit.NoArgs,
		RunE: func(cmd *cobra.Command, args []string) error { return o.run(cmd, a) },
	}
	flags := cmd.Flags()
	o.AddSelectFlags(flags)
	flags.StringSliceVar(&o.scenarios, "scenario", nil, "`names` of scenarios, patterns of names, files, patterns of files such as './mine/*.txt', or directories of scripts, separated by commas; @classic is a fixed selection of 44 scenarios (default: the whole library)")
	flags.IntVar(&o.jobs, "jobs", runtime.NumCPU(), "`number` of cells to play in parallel, each in a worker process; unless given, up to 6 times as many in the world process, up to 4 times in other worlds of real time or with sentinels, and fewer while the machine is late")
	flags.StringSliceVar(&o.formats, "format", []string{kit.FormatTable}, "`formats` of the report, separated by commas: FORMAT prints to standard output, FORMAT=FILE writes a file; formats are "+strings.Join(formNames(), ", "))
	flags.StringVar(&o.costs, "costs", "", "`file` of costs for the report, written by lockfault bench --format json (default none)")
	flags.StringVar(&o.baseline, "baseline", "", "previous `report` to compare with, a directory or a results.json; the exit status is 1 if a cell got worse (default none)")
	flags.StringVar(&o.out, "out", "lockfault-report", "`directory` for the report")
	flags.BoolVar(&o.quiet, "quiet", false, "print only unexpected results, and the output of --format and --baseline")
	flags.BoolVar(&o.verbose, "verbose", false, "print a line for each finished cell on standard error")
	flags.StringVar(&o.failOn, "fail-on", "", "`class` of anomalies that gives exit status 1 even where it is only a warning: hygiene, for locks of one's own (default none)")
	flags.BoolVar(&o.resume, "resume", false, "continue the same run, which ended early in the same directory")
	flags.BoolVar(&o.accept, "accept", false, "write the anomalies of this run into the file of --expect, as allowed from now on")
	o.AddFlags(cmd)
	o.Queue.AddFlags(flags, cells.QueueAbout)
	kit.CompleteFlag(cmd, "format", formNames)
	return cmd
}

func (o *runOptions) check(cmd *cobra.Command, a *kit.App) error {
	var err error
	if o.forms, err = chooseForms(o.formats, o.out); err != nil {
		return err
	}
	changed := cmd.Flags().Changed
	if err := cmp.Or(
		kit.UsageIf(o.quiet && o.verbose, "--quiet and --verbose can't both be so: leave one of them out"),
		kit.UsageIf(changed("fail-on") && o.failOn != string(checker.Hygiene), "unknown class %q of --fail-on: bugs of the other classes always count, so it can only be %s", o.failOn, checker.Hygiene),
		kit.Between("jobs", o.jobs, 1, kit.MaxWorkers),
		kit.UsageIf(changed("strategy") && len(o.StrategyNames) == 0, "--strategy is empty: name some, or leave it out to play all"),
		kit.UsageIf(changed("scenario") && len(o.scenarios) == 0, "--scenario is empty: name some, or leave it out to play all"),
		kit.UsageIf(changed("baseline") && o.baseline == "", "--baseline is empty: name a report, or leave it out to compare with none"),
		kit.UsageIf(o.out == "", "--out is empty: name a directory for the report"),
		kit.UsageIf(o.accept && o.Expect == "", "--accept needs --expect, which names the file to write: --expect locks.expect, say"),
		kit.UsageIf(o.accept && o.Expect == "-", "--accept can't write to standard input: name a file with --expect"),
	); err != nil {
		return err
	}
	return o.Settings.Check(cmd, a)
}

func (o *runOptions) run(cmd *cobra.Command, a *kit.App) error {
	if err := o.check(cmd, a); err != nil {
		return err
	}
	among, err := o.Registry(cmd, a)
	if err != nil {
		return err
	}
	if o.SubjectFlags.Command != "" && cmd.Flags().Changed("service") {
		return kit.Usage("--subject is played on Redis: leave --service out")
	}
	registry, list, err := o.ChooseSubject(cmd, a, among, o.StrategyNames)
	if err != nil {
		return err
	}
	if list, err = o.OnNodes(list); err != nil {
		return err
	}
	scripts, err := selection.ChooseScenarios(cmd.Context(), o.scenarios, slices.ContainsFunc(list, func(s strategies.Strategy) bool { return s.RunsOn() != strategies.Redis }))
	if err != nil {
		return err
	}
	if err := o.checkInputs(scripts); err != nil {
		return err
	}
	var costs []reports.Cost
	if o.costs != "" {
		if costs, err = reports.ReadCosts(o.costs); err != nil {
			return kit.Exit(kit.ExitUsage, err)
		}
	}
	var baseline *reports.Results
	if o.baseline != "" { // read it before this run replaces it
		if baseline, err = kit.ReadResults(o.baseline); err != nil {
			return err
		}
	}
	expected, err := o.Expectations(cmd, registry, list, scripts, o.accept)
	if err != nil {
		return err
	}
	if o.accept {
		if err := o.checkAccept(scripts); err != nil {
			return err
		}
	}
	if err := o.Prepare(cmd.Context(), registry, scripts, list); err != nil {
		return err
	}
	leave, err := o.Share(cmd, a, nil)
	if err != nil {
		return err
	}
	defer leave()
	if list, err = o.Observe(cmd.Context(), list); err != nil {
		return err
	}
	if err := o.CheckObserved(scripts, list); err != nil {
		return err
	}
	expected.Observed(list)
	o.played = list
	o.Warn(cmd)
	each := len(list) * len(scripts)
	total := each * len(o.Worlds)
	plan, err := o.plan(list, scripts)
	if err != nil {
		return err
	}
	report, err := o.open(o.head(list, scripts, costs), plan)
	if err != nil {
		return kit.Exit(kit.ExitUsage, err)
	}
	defer report.Leave()

	progress := kit.NewProgress(cmd.ErrOrStderr(), total)
	progress.Had(total - report.Missing())
	if progress.Verbose = o.verbose; o.quiet {
		progress.Out = nil
	}
	progress.Begin()
	for i, world := range o.Worlds {
		jobs := without(o.Jobs(world, i*each, scripts, list, report.Dir()), report.Has)
		err = o.Play(cmd.Context(), world, min(o.Workers(cmd, world, o.jobs), each), jobs, func(j cells.Job, p cells.Played) error {
			finished(progress, j, p.Cell)
			return report.Add(j.Number, p.Cell)
		})
		if err != nil {
			break
		}
	}
	progress.Close()
	finished := total - report.Missing()
	hint := ""
	if finished > 0 && finished < total {
		hint = "; --resume goes on"
	}
	interrupted := errors.Is(err, context.Canceled)
	switch {
	case interrupted:
		spoils := finished > 0 && report.Spoils()
		if spoils {
			hint += "; the report is still the one before"
		}
		err = kit.Exit(kit.ExitInterrupted, fmt.Errorf("interrupted: %d of %d cells are finished%s", finished, total, hint))
		if finished == 0 || spoils {
			return err
		}
	case err != nil && finished < total:
		return fmt.Errorf("%w%s", err, hint)
	}
	var accepted *cells.Acceptance
	var refused error
	if o.accept && !interrupted {
		if accepted, refused = expected.Accept(report.Cells); refused != nil {
			refused = kit.Exit(kit.ExitUndecided, fmt.Errorf("nothing was accepted: %v", refused))
		}
	}
	if !interrupted {
		if err := o.CompareWithReferences(cmd.Context(), expected, registry, scripts, report.Cells); err != nil {
			return err
		}
	}
	report.Judge(expected.Of)
	if !interrupted { // an interrupted run still writes a report of its finished cells
		report.Until(cmd.Context().Err)
	}
	switch closed := report.Close(); {
	case errors.Is(closed, context.Canceled):
		return kit.Exit(kit.ExitInterrupted, fmt.Errorf("interrupted before the report was written: all of %d cells are finished; --resume writes it", total))
	case closed != nil:
		return errors.Join(err, closed)
	}
	if err != nil && !interrupted {
		return err
	}
	if accepted != nil {
		if refused = accepted.Write(); refused != nil {
			accepted = nil
		}
	}

	of := reports.Source{Results: filepath.Join(o.out, reports.ResultsFile)}
	if !interrupted {
		of.Err = cmd.Context().Err
	}
	if baseline != nil && !interrupted && refused == nil {
		if of.Since, err = since(baseline, of.Results); err != nil {
			return err
		}
	}
	if o.silent {
		return err
	}
	s := summary{strict: o.failOn != ""}
	said := &runNotes{program: a.Program, registry: a.Everything, o: &o.Settings, scripts: scripts, expected: expected, accepted: accepted}
	switch err := o.print(cmd.OutOrStdout(), cmd.ErrOrStderr(), &s, of, said); {
	case errors.Is(err, context.Canceled):
		return kit.Exit(kit.ExitInterrupted, fmt.Errorf("interrupted: the report is in %s", o.out))
	case err != nil:
		return err
	}
	switch {
	case interrupted:
		return err
	case refused != nil:
		return refused
	case of.Since == nil:
		return cmp.Or(s.status(), o.MissingStatus())
	}
	side := cmd.ErrOrStderr()
	if o.tabled() {
		side = cmd.OutOrStdout()
	}
	if !o.quiet {
		fmt.Fprintln(side)
	}
	if err := of.Since.Write(side, "text"); err != nil {
		return err
	}
	return cmp.Or(s.status(), o.MissingStatus(), kit.DiffStatus(of.Since))
}

// since compares the results with a baseline, restricted to the cells that this run played.
func since(baseline *reports.Results, results string) (*reports.Diff, error) {
	now, err := reports.ReadResults(results)
	if err != nil {
		return nil, err
	}
	diff, err := reports.NewDiff(baseline, now, nil)
	if err != nil {
		return nil, err
	}
	diff.Narrow()
	return diff, nil
}

// open creates the report, or resumes that of an interrupted run with --resume.
func (o *runOptions) open(head reports.Head, plan reports.Plan) (*reports.Report, error) {
	if !o.resume {
		return reports.Create(o.out, head, plan)
	}
	report, err := reports.Resume(o.out, head, plan)
	if err != nil {
		err = fmt.Errorf("%w: leave out --resume to begin anew", err)
	}
	return report, err
}

// without returns the jobs whose number is not done.
func without(jobs iter.Seq[cells.Job], done func(number int) bool) iter.Seq[cells.Job] {
	return func(yield func(cells.Job) bool) {
		for j := range jobs {
			if !done(j.Number) && !yield(j) {
				return
			}
		}
	}
}

// print writes the report in the chosen formats to out. Notes, the tally and the path of the report
// follow the table; without a table they go to side, so that they do not spoil a document.
func (o *runOptions) print(out, side io.Writer, s *summary, of reports.Source, said *runNotes) error {
	measures := make([]reports.Measures, len(o.Worlds))
	head, err := reports.Scan(of.Results, func(c reports.Cell) error {
		measures[slices.Index(o.Worlds, c.World)].Add(c)
		return s.add(c)
	})
	if err != nil {
		return err
	}
	if err := o.write(out, s, measures, of); err != nil {
		return err
	}
	if o.tabled() {
		side = out
	}
	b := bufio.NewWriter(side)
	reruns, cells, longest := 0, 0, time.Duration(0)
	_, err = reports.Scan(of.Results, func(c reports.Cell) error {
		if c.Reruns > 0 {
			reruns, cells = reruns+c.Reruns, cells+1
		}
		if c.Twin != nil {
			longest = max(longest, c.Lease)
		}
		said.add(c)
		return nil
	})
	if err != nil {
		return err
	}
	said.print(b, o.quiet)
	s.warned.Print(b)
	if o.quiet {
		return b.Flush()
	}
	if !s.agree.Empty() {
		for _, line := range s.agree.Lines() {
			fmt.Fprintln(b, line)
		}
	}
	if reruns > 0 {
		fmt.Fprintf(b, "the machine was late: %s played again", kit.Count(cells, "cell was", "cells were"))
		if reruns > cells {
			fmt.Fprintf(b, ", %d times in all", reruns)
		}
		if longest > 0 {
			fmt.Fprintf(b, ", with leases of up to %v, in sim too", longest)
		}
		b.WriteString("\n")
	}
	if head.Interrupted {
		b.WriteString("so far, ")
	}
	fmt.Fprintf(b, "%s\n", s.all.Tally())
	fmt.Fprintf(b, "report: %s\n", filepath.Join(o.out, reports.HTMLFile))
	return b.Flush()
}

// write writes the report in each format of --format.
func (o *runOptions) write(out io.Writer, s *summary, measures []reports.Measures, of reports.Source) error {
	for _, f := range o.forms {
		var err error
		switch {
		case f.file != "":
			err = f.WriteFile(f.file, of)
		case f.Name == kit.FormatTable && o.quiet:
		case f.Name == kit.FormatTable:
			if err = o.table(out, s, measures); err == nil {
				err = reports.Avoidable(out, of.Results)
			}
		default:
			err = f.Write(out, of)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// table prints the comparison of each world.
func (o *runOptions) table(out io.Writer, s *summary, measures []reports.Measures) error {
	worlds, matrices := s.all.Worlds()
	for i, m := range matrices {
		if len(o.Worlds) > 1 {
			fmt.Fprintf(out, "world %s\n\n", worlds[i])
		}
		if err := m.Table(out); err != nil {
			return err
		}
		fmt.Fprintln(out)
		if !measures[i].Empty() {
			if err := measures[i].Write(out); err != nil {
				return err
			}
			fmt.Fprintln(out)
		}
	}
	return nil
}

// finished counts a cell and prints progress.
func finished(p *kit.Progress, j cells.Job, c reports.Cell) {
	p.Done++
	if p.Verbose {
		text := string(c.Verdict)
		if len(c.Anomalies) > 0 {
			text += ": " + kit.AnomalyText(c.Anomalies)
		}
		if c.Reruns > 0 {
			text += fmt.Sprintf(", played again %d times", c.Reruns)
		}
		p.Print(fmt.Sprintf("%s: %s under %s: %s", c.World, j.Strategy, j.Scenario, text))
	}
	if p.Due() {
		p.Say(fmt.Sprintf("%d of %d cells%s, last %s under %s", p.Done, p.Total, p.Left(), j.Strategy, j.Scenario))
	}
}

// checkAccept reports, before any cell runs, why the results of the scripts could not be accepted.
// The error is a scenario key that the expectations format rejects, or an --expect file that cannot
// be written.
func (o *runOptions) checkAccept(scripts []selection.Chosen) error {
	for _, script := range scripts {
		if err := new(scenarios.Expectations).Set("x", script.Key(), nil); err != nil {
			return kit.Exit(kit.ExitUsage, err)
		}
	}
	if err := atomicdir.CheckFile(o.Expect); err != nil {
		return kit.Usage("can't write the expectations: %v", kit.PathErrorText(err))
	}
	return nil
}
