package cli

import (
	"bytes"
	"errors"
	"fmt"
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
}

func newReportCommand() *cobra.Command {
	var o reportOptions
	cmd := &cobra.Command{
		Use:   "report DIR",
		Short: "Draw a report again, or one of its cells",
		Long: `Write index.html and report.md in a report's directory again, from its results.json
and histories alone: byte for byte what the run wrote, if this is the same version.
With --cell it writes nothing there, and prints the picture of one cell: svg is the
timeline, sequence the sequence diagram, mermaid the same as text for a document,
and text what trace tells.`,
		Example: `  lockfault report lockfault-report
  lockfault report lockfault-report --cell redlock/quorum-restart-empty --format mermaid`,
		Args: exactArgs("a report's directory"),
		RunE: func(cmd *cobra.Command, args []string) error { return o.report(cmd, args[0]) },
	}
	flags := cmd.Flags()
	flags.StringVar(&o.cell, "cell", "", "`STRATEGY/SCENARIO` of the cell to draw")
	flags.StringVar(&o.world, "world", "", "`name` of the world in which it was played, where there are several; default the first")
	flags.StringVar(&o.format, "format", "svg", "`form` of the picture: "+strings.Join(reports.Formats(), ", "))
	return cmd
}

func (o *reportOptions) report(cmd *cobra.Command, dir string) error {
	if !slices.Contains(reports.Formats(), o.format) {
		return unknown("format", o.format, reports.Formats(), "there are "+strings.Join(reports.Formats(), ", "))
	}
	for _, flag := range []string{"format", "world"} {
		if o.cell == "" && cmd.Flags().Changed(flag) {
			return usage("--%s needs --cell, which names what to draw", flag)
		}
	}
	if _, err := os.Stat(filepath.Join(dir, reports.ResultsFile)); errors.Is(err, fs.ErrNotExist) {
		return usage("there is no report in %s: no %s", dir, reports.ResultsFile)
	}
	if o.cell == "" {
		if err := reports.Rebuild(dir); err != nil {
			return err
		}
		_, err := fmt.Fprintf(cmd.OutOrStdout(), "report: %s\n", filepath.Join(dir, reports.HTMLFile))
		return err
	}
	strategy, scenario, found := strings.Cut(o.cell, "/")
	if !found || strategy == "" || scenario == "" {
		return usage("--cell does not take %q: give a strategy and a scenario, such as redlock/gc-pause-holding", o.cell)
	}
	var drawing bytes.Buffer // whole or not at all
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
