package cli

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

	"github.com/lockfault/lockfault/reports"
	"github.com/lockfault/lockfault/strategies"
)

type runOptions struct {
	playOptions
	selection
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
}

// Values of --format for the commands that print tables.
const (
	formatTable    = "table"
	formatMarkdown = "markdown"
	formatJSON     = "json"
)

func newRunCommand(a *app) *cobra.Command {
	var o runOptions
	cmd := &cobra.Command{
		Use:   "run",
		Short: "Play strategies under scenarios and compare them",
		Long: `Play every strategy under every scenario, or those that are named, print the
comparison and write the report: index.html, report.md, results.json, and the
history of each cell as JSON lines. It takes the place of the report before when it is
complete; until then the finished cells are kept beside that, and --resume goes
on with the missing ones.

What is expected of a cell the scenario says, or a file of your own that --expect
names: there each lock may show what it is said to show at most. --accept writes
into that file what they show now.`,
		Example: `  lockfault run
  lockfault run --strategy my-lock --expect locks.expect --accept
  lockfault run --strategy redlock,'set-nx-*' --scenario gc-pause-holding
  lockfault run --scenario ./mine.txt --seed 7 --ttl 10s --format json
  lockfault run --scenario contention,./scripts/  # and all scripts in there`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			return o.run(cmd, a)
		},
	}
	flags := cmd.Flags()
	o.selectFlags(flags)
	flags.StringSliceVar(&o.scenarios, "scenario", nil, "`names` of scenarios, patterns of names, files, patterns of files such as './mine/*.txt', or directories of scripts, with commas between them; @classic is a selection of 44 that stays the same; default the whole library")
	flags.IntVar(&o.jobs, "jobs", runtime.NumCPU(), "`number` of cells to play at a time, each in a worker process; in real time, where cells mostly wait, up to six times as many unless given, four with containers or sentinels, and fewer while the machine is late")
	flags.StringSliceVar(&o.formats, "format", []string{formatTable}, "`forms` of the report on standard output, or as FORM=FILE in a file, with commas between them: "+strings.Join(formNames(), ", "))
	flags.StringVar(&o.costs, "costs", "", "`file` that lockfault bench --format json wrote, for the report's costs")
	flags.StringVar(&o.baseline, "baseline", "", "`report` of a run before, its directory or its results.json: say what changed since, and end with status 1 if something got worse")
	flags.StringVar(&o.out, "out", "lockfault-report", "`directory` to write the report to")
	flags.BoolVar(&o.quiet, "quiet", false, "print nothing but what is not as expected, and what was asked for by --format or --baseline")
	flags.BoolVar(&o.verbose, "verbose", false, "print a line for each cell as it finishes, on standard error")
	flags.BoolVar(&o.resume, "resume", false, "go on with the same run, which has ended in the directory before it was complete")
	flags.BoolVar(&o.accept, "accept", false, "write what the locks show now into the file of --expect, as what they may show from now on")
	o.addFlags(cmd)
	o.queue.addFlags(flags, "on", onAbout)
	return cmd
}

func (o *runOptions) check(cmd *cobra.Command) error {
	var err error
	if o.forms, err = chooseForms(o.formats, o.out); err != nil {
		return err
	}
	if o.quiet && o.verbose {
		return usage("--quiet and --verbose can't both be so: leave one of them out")
	}
	if err := between("jobs", o.jobs, 1, mostWorkers); err != nil {
		return err
	}
	for _, name := range []string{"strategy", "scenario"} {
		if words, err := cmd.Flags().GetStringSlice(name); cmd.Flags().Changed(name) && err == nil && len(words) == 0 {
			return usage("--%s is empty: name some, or leave it out to play all", name)
		}
	}
	if cmd.Flags().Changed("baseline") && o.baseline == "" {
		return usage("--baseline is empty: name a report, or leave it out to compare with none")
	}
	if o.out == "" {
		return usage("--out is empty: name a directory for the report")
	}
	switch {
	case o.accept && o.expect == "":
		return usage("--accept needs --expect, which names the file to write: --expect locks.expect, say")
	case o.accept && o.expect == "-":
		return usage("--accept can't write to standard input: name a file with --expect")
	}
	return o.playOptions.check(cmd)
}

func (o *runOptions) run(cmd *cobra.Command, a *app) error {
	if err := o.check(cmd); err != nil {
		return err
	}
	o.services = a.services
	among, err := o.among(cmd, a)
	if err != nil {
		return err
	}
	if o.subjectFlags.command != "" && cmd.Flags().Changed("service") {
		return usage("--subject is played on Redis: leave --service out")
	}
	registry, list, err := o.chooseSubject(cmd, a, among, o.strategies)
	if err != nil {
		return err
	}
	if list, err = o.on(list); err != nil {
		return err
	}
	scripts, err := chooseScenarios(cmd.Context(), o.scenarios, slices.ContainsFunc(list, func(s strategies.Strategy) bool { return s.RunsOn() != strategies.Redis }))
	if err != nil {
		return err
	}
	if err := o.checkInputs(scripts); err != nil {
		return err
	}
	var costs []reports.Cost
	if o.costs != "" {
		if costs, err = reports.ReadCosts(o.costs); err != nil {
			return &statusError{ExitUsage, err}
		}
	}
	var baseline *reports.Results
	if o.baseline != "" { // read it before this run replaces it
		if baseline, err = readResults(o.baseline); err != nil {
			return err
		}
	}
	expected, err := o.expectations(cmd, registry, list, scripts, o.accept)
	if err != nil {
		return err
	}
	if o.accept {
		if err := o.checkAccept(scripts); err != nil {
			return err
		}
	}
	if err := o.prepare(cmd.Context(), registry, scripts, list); err != nil {
		return err
	}
	leave, err := o.share(cmd, a, nil)
	if err != nil {
		return err
	}
	defer leave()
	o.warn(cmd)
	each := len(list) * len(scripts)
	total := each * len(o.worlds)
	plan, err := o.plan(list, scripts)
	if err != nil {
		return err
	}
	report, err := o.open(o.head(list, scripts, costs), plan)
	if err != nil {
		return &statusError{ExitUsage, err}
	}
	defer report.Leave()

	progress := newProgress(cmd.ErrOrStderr(), total)
	progress.had(total - report.Missing())
	if progress.each = o.verbose; o.quiet {
		progress.w = nil
	}
	for i, world := range o.worlds {
		jobs := without(o.cells(world, i*each, scripts, list, report.Dir()), report.Has)
		err = o.play(cmd.Context(), world, min(o.workers(cmd, world), each), jobs, func(j job, p played) error {
			progress.finished(j, p.Cell)
			return report.Add(j.Number, p.Cell)
		})
		if err != nil {
			break
		}
	}
	progress.close()
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
		err = &statusError{ExitInterrupted, fmt.Errorf("interrupted: %d of %d cells are finished%s", finished, total, hint)}
		if finished == 0 || spoils {
			return err
		}
	case err != nil && finished < total:
		return fmt.Errorf("%w%s", err, hint)
	}
	var accepted *acceptance
	var refused error
	if o.accept && !interrupted {
		if accepted, refused = expected.accept(report.Cells); refused != nil {
			refused = &statusError{ExitUndecided, fmt.Errorf("nothing was accepted: %v", refused)}
		}
	}
	report.Judge(expected.of)
	if !interrupted { // an interrupted run still writes a report of its finished cells
		report.Until(cmd.Context().Err)
	}
	switch closed := report.Close(); {
	case errors.Is(closed, context.Canceled):
		return &statusError{ExitInterrupted, fmt.Errorf("interrupted before the report was written: all of %d cells are finished; --resume writes it", total)}
	case closed != nil:
		return errors.Join(err, closed)
	}
	if err != nil && !interrupted {
		return err
	}
	if accepted != nil {
		if refused = accepted.write(); refused != nil {
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
	var s summary
	said := &runNotes{program: a.program, o: &o.playOptions, scripts: scripts, expected: expected, accepted: accepted}
	switch err := o.print(cmd.OutOrStdout(), cmd.ErrOrStderr(), &s, of, said); {
	case errors.Is(err, context.Canceled):
		return &statusError{ExitInterrupted, fmt.Errorf("interrupted: the report is in %s", o.out)}
	case err != nil:
		return err
	}
	switch {
	case interrupted:
		return err
	case refused != nil:
		return refused
	case of.Since == nil:
		return cmp.Or(s.status(), o.notFound())
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
	return cmp.Or(s.status(), o.notFound(), diffStatus(of.Since))
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
func without(jobs iter.Seq[job], done func(number int) bool) iter.Seq[job] {
	return func(yield func(job) bool) {
		for j := range jobs {
			if !done(j.Number) && !yield(j) {
				return
			}
		}
	}
}

// workers returns the number of cells played at a time. The number is --jobs if given, or a
// multiple of its default in real time, where a cell mostly waits.
func (o *runOptions) workers(cmd *cobra.Command, world string) int {
	if cmd.Flags().Changed("jobs") {
		return o.jobs
	}
	return o.at(world).Crowd() * o.jobs
}

// print writes the report in the chosen formats to out. Notes, the tally and the path of the report
// follow the table; without a table they go to side, so that they do not spoil a document.
func (o *runOptions) print(out, side io.Writer, s *summary, of reports.Source, said *runNotes) error {
	measures := make([]reports.Measures, len(o.worlds))
	head, err := reports.Scan(of.Results, func(c reports.Cell) error {
		measures[slices.Index(o.worlds, c.World)].Add(c)
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
	said.print(b)
	if o.quiet {
		return b.Flush()
	}
	if !s.agree.Empty() {
		for _, line := range s.agree.Lines() {
			fmt.Fprintln(b, line)
		}
	}
	if reruns > 0 {
		fmt.Fprintf(b, "the machine was late: %s played again", count(cells, "cell was", "cells were"))
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
		case f.Name == formatTable && o.quiet:
		case f.Name == formatTable:
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
		if len(o.worlds) > 1 {
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
