package cli

import (
	"context"
	"errors"
	"iter"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/lockfault/lockfault/internal/stdio"
	"github.com/lockfault/lockfault/internal/tempdir"
	"github.com/lockfault/lockfault/internal/workerpool"
	"github.com/lockfault/lockfault/internal/worlds"
	"github.com/lockfault/lockfault/reports"
	"github.com/lockfault/lockfault/scenarios"
	"github.com/lockfault/lockfault/strategies"
)

// playOptions holds the flags that say how cells are played, for all commands that play cells.
type playOptions struct {
	worlds      []string
	failover    string
	place       worlds.Place
	seed        uint64
	ttl         time.Duration
	nodes       int // number of nodes of every strategy; 0 keeps each strategy's own
	cellTimeout time.Duration
	expect      string
	isolate     bool
	isolating   bool // --isolate was given
	subject     *subject
	services    []worlds.Service // available services other than Redis
	missing     []error          // errors of needed services that cannot be started
	subjectFlags
	queue  queueFlags
	shared *shared // nil if everything is played on this machine
}

const defaultSeed = 1

func (o *playOptions) addFlags(cmd *cobra.Command) {
	o.addWorldFlags(cmd, "`names` of the worlds to play in, with commas between them: ")
	o.subjectFlags.addFlags(cmd)
	cmd.Flags().StringVar(&o.failover, "failover", byReplicaOf, "`who` promotes a replica in real time: "+strings.Join(promoters(), ", "))
	cmd.Flags().StringVar(&o.expect, "expect", "", "`file` that says what locks may show, in place of the scripts")
	cmd.Flags().BoolVar(&o.isolate, "isolate", false, "play each cell of virtual time in a process of its own: all cells, or none with =false; default those of strategies that are not built in")
}

// addWorldFlags adds the flags for the worlds in which cells are played.
func (o *playOptions) addWorldFlags(cmd *cobra.Command, names string) {
	cmd.Flags().Uint64Var(&o.seed, "seed", defaultSeed, "`number` that decides latencies, tie-breaks and the strategies' randomness")
	cmd.Flags().DurationVar(&o.ttl, "ttl", 0, "lease to use in place of each script's own, such as 10s")
	cmd.Flags().IntVar(&o.nodes, "nodes", 0, "`number` of nodes for strategies that take any, such as redlock; default what each has by itself")
	cmd.Flags().StringSliceVar(&o.worlds, "world", []string{worlds.Sim}, names+strings.Join(worlds.Names(), ", "))
	cmd.Flags().StringVar(&o.place.RedisServer, "redis-server", "", "server `program` of the world process; default redis-server or valkey-server from PATH")
	cmd.Flags().StringVar(&o.place.Image, "image", worlds.DefaultImage, "`image` of the world docker, of Redis or Valkey")
	o.addRedisFlag(cmd)
	cmd.Flags().DurationVar(&o.cellTimeout, "cell-timeout", 0, "real time that one cell may take; default 20s in virtual time, minutes in real time")
}

// Values of --failover: who promotes a replica in real time.
const (
	byReplicaOf = "replicaof" // lockfault, with REPLICAOF NO ONE
	bySentinel  = "sentinel"  // three sentinels, which clients ask for the primary
)

func promoters() []string { return []string{byReplicaOf, bySentinel} }

// on returns the strategies with the number of nodes of --nodes, or list unchanged if the flag is
// not set.
func (o *playOptions) on(list []strategies.Strategy) ([]strategies.Strategy, error) {
	if o.nodes == 0 {
		return list, nil
	}
	list = slices.Clone(list)
	for i, s := range list {
		if s.Program != nil {
			continue // --subject-nodes applies to programs
		}
		on, err := s.On(o.nodes)
		if err != nil {
			return nil, usage("--nodes %d: %s runs on %d and on no other number: leave --nodes out, or name strategies that take any, such as redlock", o.nodes, s.Name, max(1, s.Nodes))
		}
		list[i] = on
	}
	return list, nil
}

// nodesOf returns the value of --nodes for a strategy; 0 means the strategy's own number.
func (o *playOptions) nodesOf(s strategies.Strategy) int {
	if s.Program != nil {
		return 0
	}
	return o.nodes
}

func (o *playOptions) check(cmd *cobra.Command) error {
	for i, world := range o.worlds {
		switch {
		case !slices.Contains(worlds.Names(), world):
			return unknown("world", world, worlds.Names(), "there are "+strings.Join(worlds.Names(), ", "))
		case slices.Contains(o.worlds[:i], world):
			return usage("--world names %s twice", world)
		}
	}
	o.place.Sentinel = o.failover == bySentinel
	o.isolating = cmd.Flags().Changed("isolate")
	switch {
	case !slices.Contains(promoters(), o.failover):
		return unknown("failover", o.failover, promoters(), "there are "+strings.Join(promoters(), ", "))
	case len(o.worlds) == 0:
		return usage("--world names no world: there are %s", strings.Join(worlds.Names(), ", "))
	case cmd.Flags().Changed("expect") && o.expect == "":
		return usage("--expect is empty: name a file, or leave it out to judge by the scripts")
	case cmd.Flags().Changed("ttl") && o.ttl <= 0:
		return usage("--ttl %v is no lease: give one such as 10s", o.ttl)
	case o.ttl%time.Millisecond != 0:
		return usage("--ttl %v is no whole number of milliseconds, which is what Redis counts", o.ttl)
	case cmd.Flags().Changed("nodes") && (o.nodes < 1 || o.nodes > scenarios.MaxNodes):
		return usage("--nodes %d: give 1 to %d, as many as a script may have", o.nodes, scenarios.MaxNodes)
	case o.ttl > longestLease:
		return between("ttl", o.ttl, time.Millisecond, longestLease)
	case o.cellTimeout > longest:
		return between("cell-timeout", o.cellTimeout, time.Nanosecond, longest)
	case cmd.Flags().Changed("cell-timeout") && o.cellTimeout <= 0:
		return usage("--cell-timeout %v leaves no time: give some, such as 20s", o.cellTimeout)
	}
	if err := o.checkFailover(); err != nil {
		return err
	}
	return o.checkRedis()
}

// cells returns a sequence with the job of each pair of scenario and strategy in a world. Histories
// go below dir. Jobs are numbered scenario by scenario, beginning with first. They are yielded in
// diagonal order, so that jobs that need the same scarce resource do not run at the same time, such
// as a scenario that starts servers or a strategy with five nodes.
func (o *playOptions) cells(world string, first int, scripts []chosen, list []strategies.Strategy, dir string) iter.Seq[job] {
	place := o.at(world)
	place.Logs = filepath.Join(dir, reports.LogsDir)
	return func(yield func(job) bool) {
		for turn := range list {
			for x, script := range scripts {
				y := (x + turn) % len(list)
				strategy := list[y]
				link := path.Join(reports.HistoryDir, world, strategy.Name, script.Name+".jsonl")
				j := job{
					Number:      first + x*len(list) + y,
					Strategy:    strategy.Name,
					Scenario:    script.Name,
					File:        script.file,
					Source:      script.source,
					Place:       place,
					Seed:        o.seed,
					TTL:         o.leaseOf(strategy),
					Limit:       o.cellTimeout,
					Nodes:       o.nodesOf(strategy),
					Subject:     o.subject,
					Isolated:    o.isolated(strategy),
					History:     filepath.Join(dir, filepath.FromSlash(link)),
					HistoryLink: link,
				}
				j.Base = j.TTL
				if !yield(j) {
					return
				}
			}
		}
	}
}

// isolated reports whether each cell of a strategy in virtual time gets its own process. All
// clients of such a cell share a process, so package variables of a lock would otherwise carry
// state into the next cell. Built-in strategies keep no such state and are not isolated by default.
func (o *playOptions) isolated(s strategies.Strategy) bool {
	if o.isolating {
		return o.isolate
	}
	return !s.Builtin()
}

// isolated reports whether the worker of a job must be a fresh process. Jobs in real worlds need
// none, because their clients are processes, unless the job also runs its twin in virtual time.
func (j job) isolated() bool { return j.Isolated && (!j.Place.Real() || j.Twin) }

// lease returns the lease that replaces the scripts' own leases; 0 keeps them. Without --ttl it is
// 0 for a single world, and the longest default of the worlds if several are compared, which needs
// equal leases.
func (o *playOptions) lease() time.Duration {
	if o.ttl != 0 || len(o.worlds) < 2 {
		return o.ttl
	}
	var longest time.Duration
	for _, world := range o.worlds {
		longest = max(longest, o.at(world).Lease())
	}
	return longest
}

// sweep removes what killed processes left in a world.
func (o *playOptions) sweep(world string) {
	o.at(world).Sweep()
	for _, service := range o.services {
		service.Sweep(o.place.Temp)
	}
}

// leaseOf returns the lease for a strategy. Without --ttl it is at least the default lease of the
// strategy's service.
func (o *playOptions) leaseOf(s strategies.Strategy) time.Duration {
	lease := o.lease()
	if i := slices.IndexFunc(o.services, func(service worlds.Service) bool { return service.Name() == s.RunsOn() }); i >= 0 && o.ttl == 0 {
		lease = max(lease, o.services[i].Lease())
	}
	return lease
}

// limitOf returns the longest real time that a job may take.
func limitOf(of any) time.Duration {
	j, ok := of.(job)
	if !ok {
		j = of.(order).job
	}
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

// grace returns how long a worker may take to exit; 0 selects the pool's default. A container
// engine removes the containers of all workers one after the other, which takes longer.
func grace(world string) time.Duration {
	if world == worlds.Docker {
		return 30 * time.Second
	}
	return 0
}

// Default limits of limitOf.
const (
	simLimit  = 20 * time.Second
	realLimit = 2 * time.Minute
)

// prepare checks, before anything is replaced, that the scripts name existing strategies, that at
// least one cell applies and that the worlds are available.
func (o *playOptions) prepare(ctx context.Context, registry strategies.Registry, scripts []chosen, list []strategies.Strategy) error {
	if err := checkNames(registry, scripts); err != nil {
		return err
	}
	if err := o.checkSelection(scripts, list); err != nil {
		return err
	}
	needed := map[string]bool{}
	for _, s := range list {
		needed[s.RunsOn()] = true
	}
	for _, world := range o.worlds {
		if !needed[strategies.Redis] {
			continue
		}
		switch err := o.at(world).Check(ctx); {
		case errors.Is(err, worlds.ErrAddress):
			return &statusError{ExitUsage, err}
		case err != nil:
			return &statusError{ExitUndecided, err}
		}
	}
	return o.findServices(ctx, needed)
}

// findServices checks which needed services can be started here. If none can, it returns the first
// error; otherwise it records the missing services, whose cells become not applicable.
func (o *playOptions) findServices(ctx context.Context, needed map[string]bool) error {
	if !slices.Contains(o.worlds, worlds.Process) {
		return nil
	}
	missing := map[string]string{}
	for _, service := range o.services {
		if !needed[service.Name()] {
			continue
		}
		if err := service.Check(ctx); err != nil && ctx.Err() == nil {
			missing[service.Name()] = err.Error()
			o.missing = append(o.missing, err)
		}
	}
	if len(missing) == len(needed) {
		return &statusError{ExitUndecided, o.missing[0]}
	}
	o.place.Missing = missing
	return ctx.Err()
}

// notFound returns the exit status of a run that skipped cells because a service is missing, or
// nil.
func (o *playOptions) notFound() error {
	if len(o.missing) == 0 {
		return nil
	}
	return &statusError{code: ExitUndecided}
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

// busy reports whether the result of a job shows that the machine is overloaded.
func busy(answer any, failure *workerpool.Failure) bool {
	p := answer.(played)
	return p.Late > 0 || p.Strain > strained || failure != nil && failure.Limit > 0
}

// play plays the jobs in worker processes, or on other machines with --on, and calls done with each
// result in the order of completion. The cell of a result has observations, not yet expectations.
// Cells for which the machine was too slow are played again after the others, with a longer lease,
// which tolerates more lateness, and with a quarter of the workers.
func (o *playOptions) play(ctx context.Context, world string, workers int, jobs iter.Seq[job], done func(job, played) error) (err error) {
	start, err := startWorker()
	if err != nil {
		return err
	}
	defer o.sweep(world) // remains of killed workers
	tempdir.Sweep("", tracePrefix)
	defer func() { err = o.leave(ctx, world, err) }()
	var crew workerpool.IdleWorkers
	defer crew.Close(grace(world))
	for {
		var again []job
		options := workerpool.Options{Workers: workers, Start: start, Limit: limitOf, Grace: grace(world), Idle: &crew}
		options.Fresh = func(j any) bool { return j.(job).isolated() }
		if world != worlds.Sim {
			options.Busy = busy
		}
		run := workerpool.Run[job, played]
		if o.shared != nil {
			run = o.shared.run
		}
		err := run(ctx, options, jobs, func(j job, r workerpool.Result[played]) error {
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
				again = append(again, o.rerun(j, r.Value))
				return nil
			case r.Failure != nil:
				if why := o.polling(world); r.Failure.Limit > 0 && why != "" {
					r.Failure.Reason += "; " + why
				}
				cell = reports.Cell{
					World:    j.Place.World,
					Strategy: j.Strategy,
					Scenario: j.Scenario,
					Verdict:  reports.Error,
					Reason:   r.Failure.Error(),
				}
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
		workers = max(1, workers/4)
		jobs = slices.Values(again)
	}
}

// deservesAnother reports whether a cell has no verdict because of the machine and should be played
// again. An error may be caused by lateness once; if it repeats, it has another cause.
func (o *playOptions) deservesAnother(j job, was played) bool {
	limit := attempts
	if was.Rigid && o.ttl == 0 {
		limit = rigidAttempts
	}
	return was.Late > 0 && len(j.Late)+1 < limit && (was.Cell.Verdict != reports.Error || len(j.Late) == 0)
}

// rerun returns the job that plays a cell again. Its lease is longer, unless the user set --ttl, or
// the script or the job needs this lease.
func (o *playOptions) rerun(j job, was played) job {
	j.Late = append(slices.Clip(j.Late), was.Cell.Reason)
	lease := was.Cell.Lease
	if o.ttl != 0 || j.Fixed || j.Count || was.Rigid || lease == 0 {
		return j
	}
	base := j.Base
	if base == 0 {
		base = j.Place.Lease()
	}
	j.TTL = max(lease, min(worlds.RetryLease(base, lease, was.Late), stretch*base))
	j.Twin = j.TTL != base && slices.Contains(o.worlds, worlds.Sim)
	return j
}

// verdictStatus returns the exit status for a tally of verdicts, or nil for status 0.
func verdictStatus(t reports.Tally) error {
	switch {
	case t.Unknown+t.Failed > 0:
		return &statusError{code: ExitUndecided}
	case t.Differing > 0:
		return &statusError{code: ExitDiffers}
	}
	return nil
}
