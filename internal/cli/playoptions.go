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

// playOptions say how cells are played, for every command that plays some.
type playOptions struct {
	worlds      []string
	failover    string
	place       worlds.Place
	seed        uint64
	ttl         time.Duration
	nodes       int // of every strategy; 0 is each its own
	cellTimeout time.Duration
	expect      string
	isolate     bool
	isolating   bool // isolate was given
	subject     *subject
	services    []worlds.Service // that there are besides Redis
	missing     []error          // why some of those that are needed can't be started
	subjectFlags
	queue  queueFlags
	shared *shared // nil if all is played here
}

const defaultSeed = 1

func (o *playOptions) addFlags(cmd *cobra.Command) {
	o.addWorldFlags(cmd, "`names` of the worlds to play in, with commas between them: ")
	o.subjectFlags.addFlags(cmd)
	cmd.Flags().StringVar(&o.failover, "failover", byReplicaOf, "`who` promotes a replica in real time: "+strings.Join(promoters(), ", "))
	cmd.Flags().StringVar(&o.expect, "expect", "", "`file` that says what locks may show, in place of the scripts")
	cmd.Flags().BoolVar(&o.isolate, "isolate", false, "play each cell of virtual time in a process of its own: all cells, or none with =false; default those of strategies that are not built in")
}

// addWorldFlags adds the flags that say where cells are played.
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

// Who promotes a replica.
const (
	byReplicaOf = "replicaof" // lockfault, by REPLICAOF NO ONE
	bySentinel  = "sentinel"  // three sentinels, whom clients ask
)

func promoters() []string { return []string{byReplicaOf, bySentinel} }

// on returns the strategies on the number of nodes that was asked for.
func (o *playOptions) on(list []strategies.Strategy) ([]strategies.Strategy, error) {
	if o.nodes == 0 {
		return list, nil
	}
	list = slices.Clone(list)
	for i, s := range list {
		if s.Program != nil {
			continue // --subject-nodes is about it
		}
		on, err := s.On(o.nodes)
		if err != nil {
			return nil, usage("--nodes %d: %s runs on %d and on no other number: leave --nodes out, or name strategies that take any, such as redlock", o.nodes, s.Name, max(1, s.Nodes))
		}
		list[i] = on
	}
	return list, nil
}

// nodesOf returns the number of nodes that a strategy was asked to run on; 0 is its own.
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

// cells yields the job of every pair of a scenario and a strategy in that world,
// with histories below the directory. They are numbered scenario by scenario, the
// first has that number; but they come mixed: what a scenario takes most of, such as
// servers that start, or a strategy, such as five of them, isn't wanted by all who
// play at a time.
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

// isolated reports whether a strategy's cells of virtual time are played in processes of
// their own: all clients of such a cell are in one process, and what a package keeps
// in its variables would be there for the next cell. The built-in strategies keep
// nothing.
func (o *playOptions) isolated(s strategies.Strategy) bool {
	if o.isolating {
		return o.isolate
	}
	return !s.Builtin()
}

// isolated reports whether a job's worker is to do nothing else. Clients in real worlds
// are processes of their own.
func (j job) isolated() bool { return j.Isolated && (!j.Place.Real() || j.Twin) }

// lease returns the lease that replaces each script's own, 0 if none does:
// worlds that are compared need the same.
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

// sweep removes what dead processes left of a world.
func (o *playOptions) sweep(world string) {
	o.at(world).Sweep()
	for _, service := range o.services {
		service.Sweep(o.place.Temp)
	}
}

// leaseOf is lease for one strategy: what runs on another service than Redis has that one's lease
// unless the user gives one.
func (o *playOptions) leaseOf(s strategies.Strategy) time.Duration {
	lease := o.lease()
	if i := slices.IndexFunc(o.services, func(service worlds.Service) bool { return service.Name() == s.RunsOn() }); i >= 0 && o.ttl == 0 {
		lease = max(lease, o.services[i].Lease())
	}
	return lease
}

// limitOf returns how much real time a job may take.
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
		// Three leases and a half are what scripts wait at most; whatever else
		// takes time doesn't depend on the lease.
		return realLimit + 40*j.TTL
	}
}

// grace returns how long a worker may take to end: an engine removes one container
// after the other, of all workers. 0 is the pool's own.
func grace(world string) time.Duration {
	if world == worlds.Docker {
		return 30 * time.Second
	}
	return 0
}

// The limits of limit.
const (
	simLimit  = 20 * time.Second
	realLimit = 2 * time.Minute
)

// prepare finds out, before anything is replaced, whether the scripts speak of who
// there is, there is something to play, and the worlds are there.
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

// findServices finds out which of the services that are needed can't be started here. If there is none that can it returns why,
// and else takes note: cells of the others are played.
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

// notFound is the status of a run some of whose cells were not played because their service is missing.
func (o *playOptions) notFound() error {
	if len(o.missing) == 0 {
		return nil
	}
	return &statusError{code: ExitUndecided}
}

// attempts is how often a cell is played that the machine was too slow for, and
// stretch how many times as long the lease may become. One that can't be given a longer
// lease, since its script tells spans in seconds, waits for a better moment.
const (
	attempts      = 4
	rigidAttempts = 10
	stretch       = 8
)

// strained is the strain from which fewer cells are played at a time, before there are
// some that it is too much for.
const strained = 0.5

// busy reports whether a job shows that the machine had too much to do.
func busy(answer any, failure *workerpool.Failure) bool {
	p := answer.(played)
	return p.Late > 0 || p.Strain > strained || failure != nil && failure.Limit > 0
}

// play plays the jobs in worker processes, or on other machines, and calls done with what each came to,
// its cell above all, in the order in which they finish: what it showed, not yet what was expected of
// it. Cells for which the machine was too slow are played again when the others are
// done, with a longer lease, which bears more, and a quarter as many at a time.
func (o *playOptions) play(ctx context.Context, world string, workers int, jobs iter.Seq[job], done func(job, played) error) (err error) {
	start, err := startWorker()
	if err != nil {
		return err
	}
	defer o.sweep(world) // what workers left that were killed
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
			// The worker may be a program of another machine.
			cell.World, cell.Strategy, cell.Scenario = j.Place.World, j.Strategy, j.Scenario
			if cell.History != "" {
				cell.History = j.HistoryLink
			}
			// A cell that takes too long among others is played once more among fewer.
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

// deservesAnother reports whether the machine may be why a cell came to nothing, and another time be less so. An error may have
// come of lateness; one that comes again has another reason.
func (o *playOptions) deservesAnother(j job, was played) bool {
	limit := attempts
	if was.Rigid && o.ttl == 0 {
		limit = rigidAttempts
	}
	return was.Late > 0 && len(j.Late)+1 < limit && (was.Cell.Verdict != reports.Error || len(j.Late) == 0)
}

// flagArgs returns the job of playing a cell anew, with a longer lease unless its user
// wants that lease, or the script is about that one.
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

// verdictStatus returns how a command ends that came to these verdicts.
func verdictStatus(t reports.Tally) error {
	switch {
	case t.Unknown+t.Failed > 0:
		return &statusError{code: ExitUndecided}
	case t.Differing > 0:
		return &statusError{code: ExitDiffers}
	}
	return nil
}
