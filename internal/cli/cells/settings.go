// Package cells plays cells in worker processes of this machine or of a queue. [Settings] holds the
// flags that say how, [Settings.Jobs] makes the jobs of a selection, and [Settings.Play] plays them and
// passes on each result, with reruns where the machine was too slow. [Work] is the other side, a worker
// process, and [QueueWorker] plays the cells of a queue. Results have observations and no expectations;
// [Settings.Expectations] adds these. The package prints warnings and nothing else.
package cells

import (
	"cmp"
	"context"
	"errors"
	"iter"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/lockfault/lockfault/internal/cli/kit"
	"github.com/lockfault/lockfault/internal/cli/selection"
	"github.com/lockfault/lockfault/internal/shell"
	"github.com/lockfault/lockfault/internal/stdio"
	"github.com/lockfault/lockfault/internal/tempdir"
	"github.com/lockfault/lockfault/internal/workerpool"
	"github.com/lockfault/lockfault/internal/worlds"
	"github.com/lockfault/lockfault/reports"
	"github.com/lockfault/lockfault/scenarios"
	"github.com/lockfault/lockfault/strategies"
)

// Settings holds the flags that say how cells are played, for all commands that play cells.
type Settings struct {
	Worlds      []string
	PromoteBy   string
	Place       worlds.Place
	Seed        uint64
	TTL         time.Duration
	Nodes       int // number of nodes of every strategy; 0 keeps each strategy's own
	CellTimeout time.Duration
	Expect      string
	isolate     bool
	isolating   bool // --isolate was given
	Subject     *selection.Subject
	Services    []worlds.Service    // available services other than Redis
	containers  worlds.Containers   // nil if the program has no container engine
	observed    map[string][]string // tags that Observe has added, by strategy
	hints       []string            // what short runs say about the declarations of locks
	missing     []error             // errors of needed services that cannot be started
	selection.SubjectFlags
	Queue  QueueFlags
	Remote *Remote // nil if everything is played on this machine
}

const DefaultSeed = 1

func (o *Settings) AddFlags(cmd *cobra.Command) {
	o.AddWorldFlags(cmd)
	o.SubjectFlags.AddFlags(cmd)
	cmd.Flags().StringVar(&o.PromoteBy, "promote-by", ByReplicaOf, "`method` of promoting a replica in real time: "+strings.Join(promoters(), ", "))
	cmd.Flags().StringVar(&o.Expect, "expect", "", "`file` of the anomalies that each lock may show (default: the expectations of the scripts; for a lock of your own, its class)")
	cmd.Flags().BoolVar(&o.isolate, "isolate", false, "play each cell of virtual time in its own process: all cells, or no cell with =false (default: cells of strategies that are not built in)")
}

// AddWorldFlags adds the flags for the worlds in which cells are played.
func (o *Settings) AddWorldFlags(cmd *cobra.Command) {
	cmd.Flags().Uint64Var(&o.Seed, "seed", DefaultSeed, "`number` that determines latencies, tie-breaks and the randomness of strategies")
	cmd.Flags().DurationVar(&o.TTL, "ttl", 0, "lease that replaces the lease of each script, such as 10s")
	cmd.Flags().IntVar(&o.Nodes, "nodes", 0, "`number` of Redis nodes for quorum locks (default: the strategy's own)")
	cmd.Flags().StringSliceVar(&o.Worlds, "world", []string{worlds.Sim}, "`names` of the worlds to play in, separated by commas: "+strings.Join(worlds.Names(), ", "))
	cmd.Flags().StringVar(&o.Place.RedisServer, "redis-server", "", "server `program` of the world process (default: redis-server or valkey-server from PATH)")
	cmd.Flags().StringVar(&o.Place.Image, "image", worlds.DefaultImage, "Redis or Valkey `image` of the world docker")
	o.addRedisFlag(cmd)
	cmd.Flags().DurationVar(&o.CellTimeout, "cell-timeout", 0, "maximum real time of one cell (default: 20s in virtual time, minutes in real time)")
}

// Values of --promote-by: who promotes a replica in real time.
const (
	ByReplicaOf = "replicaof" // lockfault, with REPLICAOF NO ONE
	bySentinel  = "sentinel"  // three sentinels, which clients ask for the primary
)

func promoters() []string { return []string{ByReplicaOf, bySentinel} }

// ChooseOne returns the only strategy that a word names, on the number of nodes of --nodes. A program
// is a usage error, as are several strategies, for which advice says what to do.
func (o *Settings) ChooseOne(cmd *cobra.Command, a *kit.App, registry strategies.Registry, word, advice string) ([]strategies.Strategy, error) {
	list, err := selection.ChooseStrategies(a, registry, []string{word})
	if err != nil {
		return nil, err
	}
	if len(list) > 1 {
		return nil, kit.Usage("%q names %d strategies: %s", word, len(list), advice)
	}
	if err := selection.RefuseProgram(cmd, list[0]); err != nil {
		return nil, err
	}
	return o.OnNodes(list)
}

// OnNodes returns the strategies with the number of nodes of --nodes, or list unchanged if the flag is
// not set.
func (o *Settings) OnNodes(list []strategies.Strategy) ([]strategies.Strategy, error) {
	if o.Nodes == 0 {
		return list, nil
	}
	list = slices.Clone(list)
	for i, s := range list {
		if s.Program != nil {
			continue // --subject-nodes applies to programs
		}
		on, err := s.On(o.Nodes)
		if err != nil {
			return nil, kit.Usage("--nodes %d: %s runs on %d and on no other number: leave --nodes out, or name strategies that take any, such as redlock", o.Nodes, s.Name, max(1, s.Nodes))
		}
		list[i] = on
	}
	return list, nil
}

// NodesOf returns the value of --nodes for a strategy; 0 means the strategy's own number.
func (o *Settings) NodesOf(s strategies.Strategy) int {
	if s.Program != nil {
		return 0
	}
	return o.Nodes
}

// Check returns a usage error for an invalid flag, or for a flag that needs a part of the program
// that this program lacks.
func (o *Settings) Check(cmd *cobra.Command, a *kit.App) error {
	o.Services, o.containers = a.Services, a.Containers
	for i, world := range o.Worlds {
		if err := cmp.Or(
			kit.OneOf("world", world, worlds.Names()),
			kit.UsageIf(slices.Contains(o.Worlds[:i], world), "--world names %s twice", world),
		); err != nil {
			return err
		}
		if world == worlds.Docker && a.Containers == nil {
			return kit.Lacks("--world "+worlds.Docker, "withdocker")
		}
	}
	if f := cmd.Flags().Lookup(queueFlag); f != nil && f.Changed && a.Engine == nil {
		return kit.Lacks("--"+queueFlag, "withqueue") // now, before another flag reads standard input
	}
	o.Place.Sentinel = o.PromoteBy == bySentinel
	changed := cmd.Flags().Changed
	o.isolating = changed("isolate")
	if err := cmp.Or(
		kit.OneOf("--promote-by", o.PromoteBy, promoters()),
		kit.UsageIf(len(o.Worlds) == 0, "--world names no world: there are %s", strings.Join(worlds.Names(), ", ")),
		kit.UsageIf(changed("expect") && o.Expect == "", "--expect is empty: name a file, or leave it out to judge by the scripts"),
		kit.UsageIf(changed("ttl") && o.TTL <= 0, "--ttl %v is no lease: give one such as 10s", o.TTL),
		kit.UsageIf(o.TTL%time.Millisecond != 0, "--ttl %v is no whole number of milliseconds, which is what Redis counts", o.TTL),
		kit.UsageIf(changed("nodes") && (o.Nodes < 1 || o.Nodes > scenarios.MaxNodes), "--nodes %d: give 1 to %d, as many as a script may have", o.Nodes, scenarios.MaxNodes),
		kit.Between("ttl", max(o.TTL, time.Millisecond), time.Millisecond, kit.MaxLease),
		kit.Between("cell-timeout", max(o.CellTimeout, time.Nanosecond), time.Nanosecond, kit.MaxDuration),
		kit.UsageIf(changed("cell-timeout") && o.CellTimeout <= 0, "--cell-timeout %v leaves no time: give some, such as 20s", o.CellTimeout),
		o.checkUnused(cmd),
		o.checkPromoteBy(),
	); err != nil {
		return err
	}
	return o.checkRedis()
}

// Jobs returns a sequence with the job of each pair of scenario and strategy in a world. Histories
// go below dir. Jobs are numbered scenario by scenario, beginning with first. They are yielded in
// diagonal order, so that jobs that need the same scarce resource do not run at the same time, such
// as a scenario that starts servers or a strategy with five nodes.
func (o *Settings) Jobs(world string, first int, scripts []selection.Chosen, list []strategies.Strategy, dir string) iter.Seq[Job] {
	place := o.At(world)
	place.Logs = filepath.Join(dir, reports.LogsDir)
	return func(yield func(Job) bool) {
		for turn := range list {
			for x, script := range scripts {
				y := (x + turn) % len(list)
				strategy := list[y]
				link := path.Join(reports.HistoryDir, world, strategy.Name, script.Name+".jsonl")
				j := o.Job(strategy)
				j.Number, j.Scenario, j.File, j.Source = first+x*len(list)+y, script.Name, script.File, script.Source
				j.Place, j.TTL, j.Subject = place, o.leaseOf(strategy), o.Subject
				j.History, j.HistoryLink = filepath.Join(dir, filepath.FromSlash(link)), link
				j.Base = j.TTL
				if !yield(j) {
					return
				}
			}
		}
	}
}

// Job returns a job with what is the same in all jobs of the strategy; the script, the world and the
// lease are missing.
func (o *Settings) Job(s strategies.Strategy) Job {
	return Job{Strategy: s.Name, Observed: o.observed[s.Name], Nodes: o.NodesOf(s), Seed: o.Seed, Limit: o.CellTimeout, Isolated: o.Isolated(s)}
}

// Isolated reports whether each cell of a strategy in virtual time gets its own process. All
// clients of such a cell share a process, so package variables of a lock would otherwise carry
// state into the next cell. Built-in strategies keep no such state and are not isolated by default.
func (o *Settings) Isolated(s strategies.Strategy) bool {
	if o.isolating {
		return o.isolate
	}
	return !s.Builtin()
}

// NeedsFresh reports whether the worker of a job must be a fresh process. Jobs in real worlds need
// none, because their clients are processes, unless the job also runs its twin in virtual time.
func (j Job) NeedsFresh() bool { return j.Isolated && (!j.Place.Real() || j.Twin) }

// Lease returns the lease that replaces the scripts' own leases; 0 keeps them. Without --ttl it is
// 0 for a single world, and the longest default of the worlds if several are compared, which needs
// equal leases.
func (o *Settings) Lease() time.Duration {
	if o.TTL != 0 || len(o.Worlds) < 2 {
		return o.TTL
	}
	var longest time.Duration
	for _, world := range o.Worlds {
		longest = max(longest, o.At(world).Lease())
	}
	return longest
}

// Workers returns the number of cells played at a time in a world. The number is jobs, the value of
// --jobs, or a multiple of its default in real time, where a cell mostly waits.
func (o *Settings) Workers(cmd *cobra.Command, world string, jobs int) int {
	if cmd.Flags().Changed("jobs") {
		return jobs
	}
	return o.At(world).Crowd() * jobs
}

// sweep removes what killed processes left in a world.
func (o *Settings) sweep(world string) {
	o.At(world).Sweep()
	for _, service := range o.Services {
		service.Sweep(o.Place.Temp)
	}
}

// leaseOf returns the lease for a strategy. Without --ttl it is at least the default lease of the
// strategy's service.
func (o *Settings) leaseOf(s strategies.Strategy) time.Duration {
	lease := o.Lease()
	if i := slices.IndexFunc(o.Services, func(service worlds.Service) bool { return service.Name() == s.RunsOn() }); i >= 0 && o.TTL == 0 {
		lease = max(lease, o.Services[i].Lease())
	}
	return lease
}

// LimitOf returns the longest real time that a job may take.
func LimitOf(of any) time.Duration {
	j := of.(Job)
	switch {
	case j.Limit != 0:
		return j.Limit
	case !j.Place.Real():
		return simLimit
	default:
		// Scripts wait at most 3.5 leases; the other costs do not depend on the lease.
		return realLimit + 40*j.TTL
	}
}

// Grace returns how long a worker may take to exit; 0 selects the pool's default. A container
// engine removes the containers of all workers one after the other, which takes longer.
func Grace(world string) time.Duration {
	if world == worlds.Docker {
		return 30 * time.Second
	}
	return 0
}

// Default limits of LimitOf.
const (
	simLimit  = 20 * time.Second
	realLimit = 2 * time.Minute
)

// Prepare checks, before anything is replaced, that the scripts name existing strategies, that at
// least one cell applies and that the worlds are available.
func (o *Settings) Prepare(ctx context.Context, registry strategies.Registry, scripts []selection.Chosen, list []strategies.Strategy) error {
	if err := selection.CheckNames(registry, scripts); err != nil {
		return err
	}
	if err := o.checkSelection(scripts, list); err != nil {
		return err
	}
	needed := map[string]bool{}
	for _, s := range list {
		needed[s.RunsOn()] = true
	}
	for _, world := range o.Worlds {
		if !needed[strategies.Redis] {
			continue
		}
		switch err := o.At(world).Check(ctx, o.containers); {
		case errors.Is(err, worlds.ErrAddress):
			return kit.Exit(kit.ExitUsage, err)
		case err != nil:
			return kit.Exit(kit.ExitUndecided, err)
		}
	}
	return o.findServices(ctx, needed)
}

// findServices checks which needed services can be started here. If none can, it returns the first
// error; otherwise it records the missing services, whose cells become not applicable.
func (o *Settings) findServices(ctx context.Context, needed map[string]bool) error {
	if !slices.Contains(o.Worlds, worlds.Process) {
		return nil
	}
	missing := map[string]string{}
	for _, service := range o.Services {
		if !needed[service.Name()] {
			continue
		}
		if err := service.Check(ctx); err != nil && ctx.Err() == nil {
			missing[service.Name()] = err.Error()
			o.missing = append(o.missing, err)
		}
	}
	if len(missing) == len(needed) {
		return kit.Exit(kit.ExitUndecided, o.missing[0])
	}
	o.Place.Missing = missing
	return ctx.Err()
}

// MissingStatus returns the exit status of a run that skipped cells because a service is missing, or
// nil.
func (o *Settings) MissingStatus() error {
	if len(o.missing) == 0 {
		return nil
	}
	return kit.Exit(kit.ExitUndecided, nil)
}

// Limits of reruns of cells for which the machine was too slow. attempts is the number of plays of
// a cell, and stretch the largest factor by which its lease grows. A cell whose script states times
// in seconds cannot get a longer lease; it gets rigidAttempts plays at the same lease, in the hope
// of a quieter machine.
const (
	attempts      = 4
	rigidAttempts = 10
	stretch       = 8
)

// strained is the strain of a cell above which fewer cells are played at a time, before the first
// cell fails for lateness.
const strained = 0.5

// Busy reports whether the result of a job shows that the machine is overloaded.
func Busy(answer any, failure *workerpool.Failure) bool {
	p := answer.(Played)
	return p.Late > 0 || p.Strain > strained || failure != nil && failure.Limit > 0
}

// Play plays the jobs in worker processes, or on other machines with --queue, and calls done with each
// result in the order of completion. The cell of a result has observations, not yet expectations.
// Cells for which the machine was too slow are played again after the others, with a longer lease,
// which tolerates more lateness, and with half of the workers.
func (o *Settings) Play(ctx context.Context, world string, workers int, jobs iter.Seq[Job], done func(Job, Played) error) (err error) {
	start, err := StartWorker()
	if err != nil {
		return err
	}
	defer o.sweep(world) // remains of killed workers
	tempdir.Sweep("", tracePrefix)
	defer func() { err = o.leave(ctx, world, err) }()
	var crew workerpool.IdleWorkers
	defer crew.Close(Grace(world))
	for {
		var again []Job
		options := workerpool.Options{Workers: workers, Start: start, Limit: LimitOf, Grace: Grace(world), Idle: &crew}
		options.Fresh = func(j any) bool { return j.(Job).NeedsFresh() }
		if world != worlds.Sim {
			options.Busy = Busy
		}
		run := workerpool.Run[Job, Played]
		if o.Remote != nil {
			run = o.Remote.run
		}
		err := run(ctx, options, jobs, func(j Job, r workerpool.Result[Played]) error {
			cell := r.Value.Cell
			// Overwrite the names: the worker may run on another machine.
			cell.World, cell.Strategy, cell.Scenario = j.Place.World, j.Strategy, j.Scenario
			if cell.History != "" {
				cell.History = j.HistoryLink
			}
			// A cell that exceeds its limit in a real world is played once more, with fewer others.
			endless := world != worlds.Sim && r.Failure != nil && r.Failure.Limit > 0 && len(j.Late) == 0
			switch {
			case endless:
				j.Late = []string{r.Failure.Reason}
				again = append(again, j)
				return nil
			case o.deservesAnother(j, r.Value):
				again = append(again, o.Rerun(j, r.Value))
				return nil
			case r.Failure != nil:
				if why := o.polling(world); r.Failure.Limit > 0 && why != "" {
					r.Failure.Reason += "; " + why
				}
				cell = reports.Cell{World: j.Place.World, Strategy: j.Strategy, Scenario: j.Scenario, Verdict: reports.Error, Reason: r.Failure.Error()}
				cell.Settle()
			case cell.Verdict == reports.Error:
				cell.Reason += stdio.OutputTail("it", r.Stderr)
			}
			r.Value.Cell = cell
			return done(j, r.Value)
		})
		if err != nil || len(again) == 0 {
			return err
		}
		workers = max(min(2, workers), workers/2) // Busy lets fewer play at a time, if need be
		jobs = slices.Values(again)
	}
}

// deservesAnother reports whether a cell has no verdict because of the machine and should be played
// again. An error may be caused by lateness once; if it repeats, it has another cause.
func (o *Settings) deservesAnother(j Job, was Played) bool {
	limit := attempts
	if was.Rigid && o.TTL == 0 {
		limit = rigidAttempts
	}
	return was.Late > 0 && len(j.Late)+1 < limit && (was.Cell.Verdict != reports.Error || len(j.Late) == 0)
}

// Rerun returns the job that plays a cell again. Its lease is longer, unless the user set --ttl, or
// the script or the job needs this lease.
func (o *Settings) Rerun(j Job, was Played) Job {
	j.Late = append(slices.Clip(j.Late), was.Cell.Reason)
	lease := was.Cell.Lease
	if o.TTL != 0 || j.Fixed || j.Count || was.Rigid || lease == 0 {
		return j
	}
	base := j.Base
	if base == 0 {
		base = j.Place.Lease()
	}
	j.TTL = max(lease, min(worlds.RetryLease(base, lease, was.Late), stretch*base))
	j.Twin = j.TTL != base && slices.Contains(o.Worlds, worlds.Sim)
	return j
}

// VerdictStatus returns the exit status for a tally of verdicts, or nil for status 0.
func VerdictStatus(t reports.Tally) error {
	switch {
	case t.Unknown+t.Failed > 0:
		return kit.Exit(kit.ExitUndecided, nil)
	case t.Differing > 0:
		return kit.Exit(kit.ExitDiffers, nil)
	}
	return nil
}

// InWorld returns the flags that play a cell in a world as this command does.
func (o *Settings) InWorld(world string) []string {
	if world == worlds.Sim {
		return o.FlagWords()
	}
	return append([]string{"--world", world}, o.FlagWords()...)
}

// FlagWords returns the flags that determine a cell in any world. flags omits the addresses and
// programs of real servers, which differ between machines.
func (o *Settings) FlagWords() []string {
	var list shell.Command
	list.Flag(o.Seed != DefaultSeed, "seed", o.Seed)
	list.Flag(o.Lease() != 0, "ttl", o.Lease())
	list.Flag(o.Nodes != 0, "nodes", o.Nodes)
	list.Flag(o.PromoteBy != "" && o.PromoteBy != ByReplicaOf, "promote-by", o.PromoteBy)
	return list
}
