package cli

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/lockfault/lockfault/reports"
)

type compareOptions struct {
	format  string
	renamed map[string]string
}

func newCompareCommand() *cobra.Command {
	var o compareOptions
	cmd := &cobra.Command{
		Use:   "compare OLD NEW",
		Short: "Say what changed between two reports",
		Long: `Compare the results of two runs, each a report's directory or a results.json: of two
versions of a library, two configurations, two designs. Cells are worse if they show
an anomaly that they did not show, better if they only show less, new or gone; those
that changed in the same way stand together. Costs that changed are named, and don't
decide anything.

The exit status is 1 if something got worse, and 3 if nothing did but a cell that had
an answer has none any more.`,
		Example: `  lockfault compare before/ lockfault-report/
  lockfault compare main.json lockfault-report/ --format markdown
  lockfault compare redis-lock-v1/ redis-lock-v2/ --renamed my-lock=my-lock-v2`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) != 2 {
				return usage("%q takes two reports, the old one and the new one: \"%s --help\" explains it", cmd.Name(), cmd.CommandPath())
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error { return o.compare(cmd, args[0], args[1]) },
	}
	flags := cmd.Flags()
	flags.StringVar(&o.format, "format", "text", "`form` of the differences: "+strings.Join(reports.DiffFormats(), ", "))
	flags.StringToStringVar(&o.renamed, "renamed", nil, "`OLD=NEW` names of strategies that are compared though they are called otherwise, with commas between them; two that are alone in their reports always are")
	return cmd
}

func (o *compareOptions) compare(cmd *cobra.Command, before, after string) error {
	if !slices.Contains(reports.DiffFormats(), o.format) {
		return unknown("format", o.format, reports.DiffFormats(), "there are "+strings.Join(reports.DiffFormats(), ", "))
	}
	diff, err := newDiff(before, after, o.renamed)
	if err != nil {
		return err
	}
	var text bytes.Buffer // write all of the text or nothing
	if err := diff.Write(&text, o.format); err != nil {
		return err
	}
	if _, err := text.WriteTo(cmd.OutOrStdout()); err != nil {
		return err
	}
	return diffStatus(diff)
}

// newDiff compares the reports at two paths that a user named.
func newDiff(old, new string, renamed map[string]string) (*reports.Diff, error) {
	before, err := readResults(old)
	if err != nil {
		return nil, err
	}
	after, err := readResults(new)
	if err != nil {
		return nil, err
	}
	diff, err := reports.NewDiff(before, after, renamed)
	if err != nil {
		return nil, &statusError{ExitUsage, err}
	}
	return diff, nil
}

// readResults reads the results of a report that a user named: a directory, or its results file.
func readResults(path string) (*reports.Results, error) {
	if err := checkReport(path); err != nil {
		return nil, err
	}
	r, err := reports.ReadResults(reports.ResultsIn(path))
	if err != nil {
		return nil, usage("%s is no report: give the directory of one, or its %s: %w", path, reports.ResultsFile, err)
	}
	return r, nil
}

// checkReport returns a usage error if no report exists at path.
func checkReport(path string) error {
	switch _, err := os.Stat(reports.ResultsIn(path)); {
	case errors.Is(err, fs.ErrNotExist) && reports.ResultsIn(path) != path:
		return usage("there is no report in %s: no %s", path, reports.ResultsFile)
	case err != nil:
		return usage("there is no report at %s: give a report's directory, or its %s", path, reports.ResultsFile)
	}
	return nil
}

// diffStatus returns the exit status of a comparison: [ExitDiffers] if a cell got worse,
// [ExitUndecided] if a cell lost its verdict, or nil.
func diffStatus(d *reports.Diff) error {
	switch {
	case d.Has(reports.Worse):
		return &statusError{code: ExitDiffers}
	case d.Has(reports.Lost):
		return &statusError{code: ExitUndecided}
	}
	return nil
}
