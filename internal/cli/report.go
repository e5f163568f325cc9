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

	"github.com/lockfault/lockfault/internal/cli/kit"
	"github.com/lockfault/lockfault/internal/cli/search"
	"github.com/lockfault/lockfault/reports"
)

type reportOptions struct {
	cell, world, format string
	recheck             bool
}

func newReportCommand(a *kit.App) *cobra.Command {
	var o reportOptions
	cmd := &cobra.Command{
		Use:   "report DIR",
		Short: "Write a report, or one cell, again",
		Long: `Write index.html and report.md in a report's directory again, from its results.json and
histories only. The same version of lockfault writes byte-identical files. In a directory
of "explore --out", play the findings of findings.json and write index.html again.

  --recheck  derive every verdict and anomaly again from the histories, and print the
             differences from results.json; write nothing; the exit status is 1 if there
             are differences
  --format   print the report in another format; write nothing
  --cell     print one cell: svg is the timeline, sequence the sequence diagram, mermaid
             the sequence diagram as text for a document, text the output of trace; write
             nothing`,
		Example: `  lockfault report lockfault-report
  lockfault report lockfault-report --recheck
  lockfault report lockfault-report --format junit >junit.xml
  lockfault report lockfault-report --cell redlock/quorum-restart-empty --format mermaid`,
		Args: kit.ExactArgs("a report's directory"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return kit.Interrupted(o.report(cmd, a, args[0]), "interrupted: nothing was written")
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&o.cell, "cell", "", "`STRATEGY/SCENARIO` of the cell to print (default none)")
	flags.StringVar(&o.world, "world", "", "`name` of the cell's world, if the report has several (default: the first)")
	flags.StringVar(&o.format, "format", "", "`format` to print: "+strings.Join(documents(), ", ")+"; with --cell "+strings.Join(reports.Formats(), ", ")+" (default: svg with --cell)")
	kit.CompleteFlag(cmd, "format", func() []string { return union(reports.Formats(), documents()) })
	flags.BoolVar(&o.recheck, "recheck", false, "derive all results again from the histories, and compare")
	return cmd
}

// documents returns the names of the forms of a whole report.
func documents() []string {
	return kit.Each(reports.Forms(), func(f reports.Format) string { return f.Name })
}

// union returns a followed by the elements of b that are not in a. union may modify both slices.
func union(a, b []string) []string {
	return append(a, slices.DeleteFunc(b, func(s string) bool { return slices.Contains(a, s) })...)
}

func (o *reportOptions) report(cmd *cobra.Command, a *kit.App, dir string) error {
	known := documents()
	if o.cell != "" {
		known = reports.Formats()
		o.format = cmp.Or(o.format, known[0])
	}
	info, err := os.Stat(dir)
	if err := cmp.Or(
		kit.OneOf("format", cmp.Or(o.format, known[0]), known),
		kit.UsageIf(o.recheck && (o.cell != "" || o.format != ""), "--recheck takes all of a report, and says what differs: leave --cell and --format out"),
		kit.UsageIf(o.cell == "" && cmd.Flags().Changed("world"), "--world needs --cell, which names what to draw"),
		kit.UsageIf(err == nil && !info.IsDir(), "%s is no directory: give that of a report, in which %s lies", dir, reports.ResultsFile),
	); err != nil {
		return err
	}
	if _, err := os.Stat(filepath.Join(dir, reports.ResultsFile)); errors.Is(err, fs.ErrNotExist) {
		if _, err := os.Stat(filepath.Join(dir, search.FindingsFile)); err != nil {
			return kit.Usage("there is no report in %s: no %s", dir, reports.ResultsFile)
		}
		if o.recheck || o.cell != "" || o.format != "" {
			return kit.Usage("%s has the findings of a search: leave --recheck, --cell and --format out, which are for results of a run", dir)
		}
		if err := search.ReportFindings(cmd.Context(), a.Registry, dir); err != nil {
			return err
		}
		_, err := fmt.Fprintf(cmd.OutOrStdout(), "report: %s\n", filepath.Join(dir, reports.HTMLFile))
		return err
	}
	if o.recheck {
		return recheck(cmd.Context(), cmd.OutOrStdout(), dir)
	}
	var text bytes.Buffer // write all of the text or nothing
	strategy, scenario, _ := strings.Cut(o.cell, "/")
	switch {
	case o.cell == "" && o.format == "":
		err = reports.Rebuild(cmd.Context(), dir)
		fmt.Fprintf(&text, "report: %s\n", filepath.Join(dir, reports.HTMLFile))
	case o.cell == "":
		f := reports.Forms()[slices.Index(known, o.format)]
		err = f.Write(&text, reports.Source{Results: filepath.Join(dir, reports.ResultsFile), Err: cmd.Context().Err})
	case strategy == "" || scenario == "":
		return kit.Usage("--cell does not take %q: give a strategy and a scenario, such as redlock/gc-pause-holding", o.cell)
	default:
		err = reports.DrawCell(&text, dir, strategy, scenario, o.world, o.format)
		if errors.Is(err, reports.ErrNoCell) {
			return kit.Usage("there is no cell %s in %s", o.cell, filepath.Join(dir, reports.ResultsFile))
		}
	}
	if err != nil {
		return err
	}
	_, err = text.WriteTo(cmd.OutOrStdout())
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
	fmt.Fprintf(w, "%s what the histories show", kit.Count(r.Cells, "cell is", "cells are"))
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
		return kit.Exit(kit.ExitDiffers, nil)
	}
	return nil
}
