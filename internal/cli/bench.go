package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"runtime"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/lockfault/lockfault/internal/atomicdir"
	"github.com/lockfault/lockfault/internal/bench"
	"github.com/lockfault/lockfault/internal/cli/kit"
	"github.com/lockfault/lockfault/internal/cli/selection"
	"github.com/lockfault/lockfault/internal/version"
	"github.com/lockfault/lockfault/reports"
)

type benchOptions struct {
	selection.Flags
	svg    string
	format string
	bench.Options
}

func newBenchCommand(a *kit.App) *cobra.Command {
	var o benchOptions
	cmd := &cobra.Command{
		Use:   "bench",
		Short: "Measure locks and the gate on real servers",
		Long: `Start redis-server processes or servers of another service. Measure how many times a
second each selected strategy can be acquired and released, and the latency, on four
paths:

  - directly
  - through a link that does not inspect messages
  - through the gate before a script begins
  - through the gate after a script began

The paths take turns, so that other load on the machine affects all paths equally.
Compare only numbers of the same run.`,
		Example: `  lockfault bench
  lockfault bench --strategy redlock,'set-nx-*' --contenders 1,2,4,8 --time 5s
  lockfault bench --strategy set-wait --replicas 2 --format markdown --svg costs.svg
  lockfault bench --service redis,etcd,postgres --format json >costs.json`,
		Args: kit.NoArgs,
		RunE: func(cmd *cobra.Command, args []string) error { return o.run(cmd, a) },
	}
	flags := cmd.Flags()
	o.AddSelectFlags(flags)
	flags.IntSliceVar(&o.Contenders, "contenders", bench.DefaultContenders(), "`numbers` of clients that want the same lock, separated by commas")
	flags.DurationVar(&o.Time, "time", bench.DefaultTime, "measuring time for each path, strategy and number of contenders")
	flags.IntVar(&o.Replicas, "replicas", 0, "`number` of replicas of each node, for strategies that wait for replicas (default 0)")
	flags.StringVar(&o.RedisServer, "redis-server", "", "server `program` (default: redis-server or valkey-server from PATH)")
	flags.StringVar(&o.format, "format", kit.FormatTable, "`format` of the costs on standard output: table, markdown or json")
	kit.CompleteFlag(cmd, "format", benchForms)
	flags.StringVar(&o.svg, "svg", "", "`file` for a plot of the costs (default none)")
	return cmd
}

func benchForms() []string { return []string{kit.FormatTable, kit.FormatMarkdown, kit.FormatJSON} }

// Bounds of the bench flags: the shortest --time, and the largest numbers of contenders and
// replicas.
const (
	leastTime      = 10 * time.Millisecond
	mostContenders = 1000
	mostReplicas   = 10
)

func (o *benchOptions) check() error {
	if err := cmp.Or(
		kit.OneOf("format", o.format, benchForms()),
		kit.Between("time", o.Time, leastTime, kit.MaxDuration),
		kit.Between("replicas", o.Replicas, 0, mostReplicas),
		kit.UsageIf(len(o.Contenders) == 0, "--contenders is empty: give numbers such as 1,8"),
	); err != nil {
		return err
	}
	for i, n := range o.Contenders {
		if err := cmp.Or(
			kit.UsageIf(n < 1 || n > mostContenders, "--contenders %d: give numbers from 1 to %d", n, mostContenders),
			kit.UsageIf(slices.Contains(o.Contenders[:i], n), "--contenders names %d twice", n),
		); err != nil {
			return err
		}
	}
	return nil
}

func (o *benchOptions) run(cmd *cobra.Command, a *kit.App) error {
	if err := o.check(); err != nil {
		return err
	}
	var err error
	among, err := o.Registry(cmd, a)
	if err != nil {
		return err
	}
	if o.Strategies, err = selection.ChooseStrategies(a, among, o.Flags.StrategyNames); err != nil {
		return err
	}
	o.Services = a.Services
	server, err := o.Server(cmd.Context())
	if err != nil {
		return kit.Exit(kit.ExitUndecided, err)
	}
	if o.svg != "" { // fail before measuring for minutes
		if err := atomicdir.CheckFile(o.svg); err != nil {
			return kit.Usage("can't write the plot: %v", kit.PathErrorText(err))
		}
	}
	kit.SilenceRedis()
	progress := kit.NewProgress(cmd.ErrOrStderr(), len(o.Strategies)*len(o.Contenders))
	o.Begin = func(strategy string, contenders int) {
		if progress.Done++; progress.Due() {
			progress.Say(fmt.Sprintf("%d of %d, measuring %s with %d", progress.Done, progress.Total, strategy, contenders))
		}
	}
	costs, err := bench.Measure(cmd.Context(), o.Options)
	progress.Close()
	interrupted := errors.Is(err, context.Canceled)
	if err != nil && !interrupted {
		return err
	}
	all := reports.Costs{
		Version:     version.Of(),
		Server:      server,
		Platform:    fmt.Sprintf("%s on %s/%s, %d processors", runtime.Version(), runtime.GOOS, runtime.GOARCH, runtime.GOMAXPROCS(0)),
		Time:        o.Time,
		Replicas:    o.Replicas,
		Interrupted: interrupted,
	}
	for _, c := range costs {
		all.List = append(all.List, reports.Cost(c))
	}
	if err := o.print(cmd.OutOrStdout(), all); err != nil {
		return err
	}
	if interrupted {
		return kit.Exit(kit.ExitInterrupted, fmt.Errorf("interrupted: %d of %d costs are measured", len(costs),
			len(o.Strategies)*len(o.Contenders)*len(bench.Paths())))
	}
	return nil
}

// print writes the costs to out in the chosen form, and the plot to its file if one is named.
func (o *benchOptions) print(out io.Writer, all reports.Costs) error {
	name := ""
	if o.svg != "" {
		name = filepath.Base(o.svg)
		if err := atomicdir.Stream(o.svg, all.Plot); err != nil {
			return fmt.Errorf("write the plot: %w", kit.PathErrorText(err))
		}
	}
	switch o.format {
	case kit.FormatMarkdown:
		return all.Markdown(out, name)
	case kit.FormatJSON:
		return all.JSON(out)
	}
	return all.Table(out)
}
