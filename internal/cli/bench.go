package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"runtime"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/spf13/cobra"

	"github.com/lockfault/lockfault/internal/atomicdir"
	"github.com/lockfault/lockfault/internal/bench"
	"github.com/lockfault/lockfault/internal/version"
	"github.com/lockfault/lockfault/reports"
)

type benchOptions struct {
	selection
	svg    string
	format string
	bench.Options
}

func newBenchCommand(a *app) *cobra.Command {
	var o benchOptions
	cmd := &cobra.Command{
		Use:   "bench",
		Short: "Measure what strategies, and the gate, cost on real servers",
		Long: `Start redis-server processes, or servers of another service, and measure how many times a second each strategy,
or each that is named, can be acquired and released, and how long that takes:
bare, through a link that nobody looks into, through its gate before a script
has begun, and through the gate of a script that has begun. The paths take turns, so that
whatever else the machine does meanwhile hits all alike; compare within a run.`,
		Example: `  lockfault bench
  lockfault bench --strategy redlock,'set-nx-*' --contenders 1,2,4,8 --time 5s
  lockfault bench --strategy set-wait --replicas 2 --format markdown --svg costs.svg
  lockfault bench --service redis,etcd,postgres --format json >costs.json`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			return o.run(cmd, a)
		},
	}
	flags := cmd.Flags()
	o.selectFlags(flags)
	flags.IntSliceVar(&o.Contenders, "contenders", bench.DefaultContenders(), "`numbers` of clients that want the one lock, with commas between them")
	flags.DurationVar(&o.Time, "time", bench.DefaultTime, "how long to measure each path, of each strategy with each number of contenders")
	flags.IntVar(&o.Replicas, "replicas", 0, "`number` of replicas of each node, for strategies that wait for them")
	flags.StringVar(&o.RedisServer, "redis-server", "", "server `program`; default redis-server or valkey-server from PATH")
	flags.StringVar(&o.format, "format", formatTable, "`form` of the costs on standard output: table, markdown or json")
	flags.StringVar(&o.svg, "svg", "", "`file` to draw them into")
	return cmd
}

// Bounds of the bench flags: the shortest --time, and the largest numbers of contenders and
// replicas.
const (
	leastTime      = 10 * time.Millisecond
	mostContenders = 1000
	mostReplicas   = 10
)

func (o *benchOptions) check() error {
	switch o.format {
	case formatTable, formatMarkdown, formatJSON:
	default:
		return unknown("format", o.format, []string{formatTable, formatMarkdown, formatJSON}, "there are table, markdown and json")
	}
	if err := between("time", o.Time, leastTime, longest); err != nil {
		return err
	}
	if err := between("replicas", o.Replicas, 0, mostReplicas); err != nil {
		return err
	}
	if len(o.Contenders) == 0 {
		return usage("--contenders is empty: give numbers such as 1,8")
	}
	seen := map[int]bool{}
	for _, n := range o.Contenders {
		if n < 1 || n > mostContenders {
			return usage("--contenders %d: give numbers from 1 to %d", n, mostContenders)
		}
		if seen[n] {
			return usage("--contenders names %d twice", n)
		}
		seen[n] = true
	}
	return nil
}

func (o *benchOptions) run(cmd *cobra.Command, a *app) error {
	if err := o.check(); err != nil {
		return err
	}
	var err error
	among, err := o.among(cmd, a)
	if err != nil {
		return err
	}
	if o.Strategies, err = chooseStrategies(among, a.everything, o.selection.strategies); err != nil {
		return err
	}
	o.Services = a.services
	server, err := o.Server(cmd.Context())
	if err != nil {
		return &statusError{ExitUndecided, err}
	}
	if o.svg != "" { // fail before measuring for minutes
		if err := atomicdir.CheckFile(o.svg); err != nil {
			return usage("can't write the plot: %v", pathErrorText(err))
		}
	}
	redis.SetLogger(nopLogger{})
	progress := newProgress(cmd.ErrOrStderr(), len(o.Strategies)*len(o.Contenders))
	o.Begin = progress.measures
	costs, err := bench.Measure(cmd.Context(), o.Options)
	progress.close()
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
		return &statusError{ExitInterrupted, fmt.Errorf("interrupted: %d of %d costs are measured", len(costs),
			len(o.Strategies)*len(o.Contenders)*len(bench.Paths()))}
	}
	return nil
}

// measures reports progress: the next strategy to be measured, and its number of contenders.
func (p *progress) measures(strategy string, contenders int) {
	p.done++
	if p.due() {
		p.say(fmt.Sprintf("%d of %d, measuring %s with %d", p.done, p.total, strategy, contenders))
	}
}

// print writes the costs to out in the chosen form, and the plot to its file if one is named.
func (o *benchOptions) print(out io.Writer, all reports.Costs) error {
	name := ""
	if o.svg != "" {
		name = filepath.Base(o.svg)
		if err := atomicdir.Stream(o.svg, all.Plot); err != nil {
			return fmt.Errorf("write the plot: %w", pathErrorText(err))
		}
	}
	switch o.format {
	case formatMarkdown:
		return all.Markdown(out, name)
	case formatJSON:
		return all.JSON(out)
	}
	return all.Table(out)
}
