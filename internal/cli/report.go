package cli

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/lockfault/lockfault/reports"
)

type reportOptions struct {
	cell, world, format string
	recheck             bool
}

func newReportCommand(a *app) *cobra.Command {
	var o reportOptions
	cmd := &cobra.Command{
		Use:   "report DIR",
		Short: "Draw a report again, or one of its cells",
		Long: `Write index.html and report.md in a report's directory again, from its results.json
and histories alone: byte for byte what the run wrote, if this is the same version.
In a directory of explore --out it writes index.html again from findings.json, for which it plays
what was found.
With --recheck it writes nothing there, but derives every verdict and anomaly again from
the histories, and says where results.json has it otherwise; the exit status is 1 then.
With --format it writes nothing there, and prints the report in another form. With
--cell that is the picture of one cell: svg is the timeline, sequence the sequence
diagram, mermaid the same as text for a document, and text what trace tells.`,
		Example: `  lockfault report lockfault-report
  lockfault report lockfault-report --recheck
  lockfault report lockfault-report --format junit >junit.xml
  lockfault report lockfault-report --cell redlock/quorum-restart-empty --format mermaid`,
		Args: exactArgs("a report's directory"),
		RunE: func(cmd *cobra.Command, args []string) error {
			err := o.report(cmd, a, args[0])
			if errors.Is(err, context.Canceled) {
				return &statusError{ExitInterrupted, errors.New("interrupted: nothing was written")}
			}
			return err
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&o.cell, "cell", "", "`STRATEGY/SCENARIO` of the cell to draw")
	flags.StringVar(&o.world, "world", "", "`name` of the world in which it was played, where there are several; default the first")
	flags.StringVar(&o.format, "format", "", "`form` to print: "+strings.Join(formNames()[1:], ", ")+"; with --cell "+strings.Join(reports.Formats(), ", ")+", default svg")
	flags.BoolVar(&o.recheck, "recheck", false, "derive all results again from the histories, and compare")
	return cmd
}

func (o *reportOptions) report(cmd *cobra.Command, a *app, dir string) error {
	known := formNames()[1:]
	if o.cell != "" {
		known = reports.Formats()
		o.format = cmp.Or(o.format, known[0])
	}
	if o.format != "" && !slices.Contains(known, o.format) {
		return unknown("format", o.format, known, "there are "+strings.Join(known, ", "))
	}
	if o.recheck && (o.cell != "" || o.format != "") {
		return usage("--recheck takes all of a report, and says what differs: leave --cell and --format out")
	}
	if o.cell == "" && cmd.Flags().Changed("world") {
		return usage("--world needs --cell, which names what to draw")
	}
	if info, err := os.Stat(dir); err == nil && !info.IsDir() {
		return usage("%s is no directory: give that of a report, in which %s lies", dir, reports.ResultsFile)
	}
	if _, err := os.Stat(filepath.Join(dir, reports.ResultsFile)); errors.Is(err, fs.ErrNotExist) {
		if _, err := os.Stat(filepath.Join(dir, findingsFile)); err != nil {
			return usage("there is no report in %s: no %s", dir, reports.ResultsFile)
		}
		if o.recheck || o.cell != "" || o.format != "" {
			return usage("%s has the findings of a search: leave --recheck, --cell and --format out, which are for results of a run", dir)
		}
		if err := reportFindings(cmd.Context(), a.registry, dir); err != nil {
			return err
		}
		_, err := fmt.Fprintf(cmd.OutOrStdout(), "report: %s\n", filepath.Join(dir, reports.HTMLFile))
		return err
	}
	if o.recheck {
		return recheck(cmd.Context(), cmd.OutOrStdout(), dir)
	}
	if o.cell == "" && o.format != "" {
		var text bytes.Buffer // write all of the text or nothing
		f := reports.Forms()[slices.Index(known, o.format)]
		if err := f.Write(&text, reports.Source{Results: filepath.Join(dir, reports.ResultsFile), Err: cmd.Context().Err}); err != nil {
			return err
		}
		_, err := text.WriteTo(cmd.OutOrStdout())
		return err
	}
	if o.cell == "" {
		if err := reports.Rebuild(cmd.Context(), dir); err != nil {
			return err
		}
		_, err := fmt.Fprintf(cmd.OutOrStdout(), "report: %s\n", filepath.Join(dir, reports.HTMLFile))
		return err
	}
	strategy, scenario, found := strings.Cut(o.cell, "/")
	if !found || strategy == "" || scenario == "" {
		return usage("--cell does not take %q: give a strategy and a scenario, such as redlock/gc-pause-holding", o.cell)
	}
	var drawing bytes.Buffer // write all of the drawing or nothing
	err := reports.DrawCell(&drawing, dir, strategy, scenario, o.world, o.format)
	if errors.Is(err, reports.ErrNoCell) {
		return usage("there is no cell %s in %s", o.cell, filepath.Join(dir, reports.ResultsFile))
	}
	if err != nil {
		return err
	}
	_, err = drawing.WriteTo(cmd.OutOrStdout())
	return err
}

// recheck derives the results of a report again from its histories and prints the differences. The
// error is [ExitDiffers] if a result differs.
func recheck(ctx context.Context, w io.Writer, dir string) error {
	r, err := reports.RecheckDir(ctx, dir)
	if err != nil {
		return err
	}
	for _, line := range r.Differing {
		fmt.Fprintln(w, line)
	}
	fmt.Fprintf(w, "%s what the histories show", count(r.Cells, "cell is", "cells are"))
	for _, other := range []struct {
		n    int
		says string
	}{{len(r.Differing), "not"}, {r.Undecided, "without an answer"}, {r.NotApplicable, "not applicable"}} {
		if other.n > 0 {
			fmt.Fprintf(w, ", %d %s", other.n, other.says)
		}
	}
	fmt.Fprintln(w)
	if len(r.Differing) > 0 {
		return &statusError{code: ExitDiffers}
	}
	return nil
}
