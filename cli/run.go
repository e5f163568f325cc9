package cli

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/lockfault/lockfault/harness"
	"github.com/lockfault/lockfault/reports"
)

type runOptions struct {
	playOptions
	strategies []string
	scenarios  []string
	jobs       int
	format     string
	out        string
	costs      string
}

// The formats of a run's output.
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
comparison and write the report: results.json, report.md, and the history of
each cell as JSON lines.`,
		Example: `  lockfault run
  lockfault run --strategy redlock,'set-nx-*' --scenario gc-pause-holding
  lockfault run --scenario ./mine.txt --seed 7 --ttl 10s --format json`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			return o.run(cmd, a)
		},
	}
	flags := cmd.Flags()
	flags.StringSliceVar(&o.strategies, "strategy", nil, "`names`, patterns or @tags of strategies, with commas between them; default all")
	flags.StringSliceVar(&o.scenarios, "scenario", nil, "`names`, patterns or files of scenarios, with commas between them; default the whole library")
	flags.IntVar(&o.jobs, "jobs", runtime.NumCPU(), "`number` of cells to play at a time, each in a worker process; four times as many in real time unless given")
	flags.StringVar(&o.format, "format", formatTable, "`form` of the comparison on standard output: table, markdown or json")
	flags.StringVar(&o.costs, "costs", "", "`file` that lockfault bench --format json wrote, for the report's costs")
	flags.StringVar(&o.out, "out", "lockfault-report", "`directory` to write the report to")
	o.addFlags(cmd)
	return cmd
}

func (o *runOptions) check(cmd *cobra.Command) error {
	switch o.format {
	case formatTable, formatMarkdown, formatJSON:
	default:
		return unknown("format", o.format, []string{formatTable, formatMarkdown, formatJSON}, "there are table, markdown and json")
	}
	if o.jobs < 1 {
		return usage("--jobs %d plays nothing: give 1 or more", o.jobs)
	}
	if o.out == "" {
		return usage("--out is empty: name a directory for the report")
	}
	return o.playOptions.check(cmd)
}

func (o *runOptions) run(cmd *cobra.Command, a *app) error {
	if err := o.check(cmd); err != nil {
		return err
	}
	list, err := chooseStrategies(a.registry, o.strategies)
	if err != nil {
		return err
	}
	scripts, err := chooseScenarios(o.scenarios)
	if err != nil {
		return err
	}
	var costs []reports.Cost
	if o.costs != "" {
		if costs, err = reports.ReadCosts(o.costs); err != nil {
			return &statusError{ExitUsage, err}
		}
	}
	if err := o.prepare(); err != nil {
		return err
	}
	report, err := reports.Create(o.out, reports.Head{Costs: costs, Version: version(), World: strings.Join(o.worlds, ","), Seed: o.seed, TTL: o.lease()})
	if err != nil {
		return &statusError{ExitUsage, err}
	}

	each := len(list) * len(scripts)
	total := each * len(o.worlds)
	progress := newProgress(cmd.ErrOrStderr(), total)
	for i, world := range o.worlds {
		jobs := o.cells(world, i*each, scripts, list, o.out)
		err = o.play(cmd.Context(), world, min(o.workers(cmd, world), each), jobs, func(j job, cell reports.Cell) error {
			progress.finished(j)
			return report.Add(j.Number, cell)
		})
		if err != nil {
			break
		}
	}
	progress.close()
	interrupted := errors.Is(err, context.Canceled)
	if closed := report.Close(interrupted); err == nil || interrupted {
		if closed != nil {
			return closed
		}
	}
	if err != nil && !interrupted {
		return err
	}

	results := filepath.Join(o.out, reports.ResultsFile)
	var all reports.Comparison
	var agree reports.Agreement
	if err := o.print(cmd.OutOrStdout(), cmd.ErrOrStderr(), &all, &agree, results); err != nil {
		return err
	}
	if interrupted {
		return &statusError{ExitInterrupted, fmt.Errorf("interrupted: %d of %d cells are finished", all.Tally().Cells, total)}
	}
	if status := verdictStatus(all.Tally()); status != nil {
		return status
	}
	if agree.Differing() > 0 {
		return &statusError{code: ExitDiffers}
	}
	return nil
}

// workers returns how many cells are played at a time. In real time a cell
// mostly waits; but an engine for containers does one thing after the other.
func (o *runOptions) workers(cmd *cobra.Command, world string) int {
	if cmd.Flags().Changed("jobs") || world == harness.Sim || world == harness.Docker {
		return o.jobs
	}
	return realCells * o.jobs
}

// realCells is how many cells of real time a processor can take.
const realCells = 4

// print writes the comparison to out in the chosen form. What differed, and
// where the report lies, goes with the table, but must not spoil a document:
// with those it goes to side.
func (o *runOptions) print(out, side io.Writer, all *reports.Comparison, agree *reports.Agreement, results string) error {
	measures := make([]reports.Measures, len(o.worlds))
	head, err := reports.Scan(results, func(c reports.Cell) error {
		measures[slices.Index(o.worlds, c.World)].Add(c)
		if err := agree.Add(c); err != nil {
			return err
		}
		return all.Add(c)
	})
	if err != nil {
		return err
	}
	worlds, matrices := all.Worlds()
	markdown := filepath.Join(o.out, reports.MarkdownFile)
	switch o.format {
	case formatTable:
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
		side = out
	case formatMarkdown:
		if err := copyFile(out, markdown); err != nil {
			return err
		}
	case formatJSON:
		if err := copyFile(out, results); err != nil {
			return err
		}
	}
	b := bufio.NewWriter(side)
	left := 40 // a screenful; the report has them all
	_, err = reports.Scan(results, func(c reports.Cell) error {
		if difference := c.Difference(); difference != "" {
			if left--; left >= 0 {
				place := ""
				if len(o.worlds) > 1 {
					place = " in " + c.World
				}
				fmt.Fprintf(b, "%s under %s%s: %s\n", c.Strategy, c.Scenario, place, difference)
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	if left < 0 {
		fmt.Fprintf(b, "and %d more\n", -left)
	}
	if !agree.Empty() {
		for _, line := range agree.Lines() {
			fmt.Fprintln(b, line)
		}
	}
	if head.Interrupted {
		b.WriteString("so far, ")
	}
	fmt.Fprintf(b, "%s\n", all.Tally())
	fmt.Fprintf(b, "report: %s\n", markdown)
	return b.Flush()
}

func copyFile(w io.Writer, name string) error {
	f, err := os.Open(name)
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = io.Copy(w, f)
	return err
}
