package cli

import (
	"bytes"
	"strings"

	"github.com/spf13/cobra"

	"github.com/lockfault/lockfault/internal/cli/kit"
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
		Short: "Compare two reports",
		Long: `Compare the results of two runs, such as runs of two versions of a library, two
configurations or two designs. OLD and NEW are directories of reports or results.json
files.

A cell is
  worse   if it shows an anomaly that it did not show before
  less    if it shows fewer anomalies, and grants less: an acquire failed that had
          succeeded while no client held
  better  if it shows fewer anomalies, and no other, and grants as much
  new     if only NEW has the cell
  gone    if only OLD has the cell

Cells that changed in the same way are listed together. Changed costs are listed, but
do not affect the exit status.

Exit status:
  0  no cell got worse or lost its verdict
  1  a cell got worse
  2  nothing was compared: the command line is invalid, or a report cannot be read
  3  no cell got worse, but a cell lost its verdict`,
		Example: `  lockfault compare before/ lockfault-report/
  lockfault compare main.json lockfault-report/ --format markdown
  lockfault compare redis-lock-v1/ redis-lock-v2/ --renamed my-lock=my-lock-v2`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) != 2 {
				return kit.Usage("%q takes two reports, the old one and the new one: \"%s --help\" explains it", cmd.Name(), cmd.CommandPath())
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error { return o.compare(cmd, args[0], args[1]) },
	}
	flags := cmd.Flags()
	flags.StringVar(&o.format, "format", "text", "`format` of the differences: "+strings.Join(reports.DiffFormats(), ", "))
	kit.CompleteFlag(cmd, "format", reports.DiffFormats)
	flags.StringToStringVar(&o.renamed, "renamed", nil, "`OLD=NEW` names of renamed strategies to compare, separated by commas; if each report has only one strategy, the two are always compared")
	return cmd
}

func (o *compareOptions) compare(cmd *cobra.Command, before, after string) error {
	if err := kit.OneOf("format", o.format, reports.DiffFormats()); err != nil {
		return err
	}
	diff, err := kit.NewDiff(before, after, o.renamed)
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
	return kit.DiffStatus(diff)
}
