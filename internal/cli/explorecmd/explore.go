// Package explorecmd is the command explore: it searches schedules on this machine (random.go), as a
// shard (shard.go) or with the workers of a queue (remote.go), and plays what it found in other worlds.
package explorecmd

import (
	"cmp"
	"context"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/lockfault/lockfault/checker"
	"github.com/lockfault/lockfault/internal/cli/cells"
	"github.com/lockfault/lockfault/internal/cli/kit"
	"github.com/lockfault/lockfault/internal/cli/search"
	"github.com/lockfault/lockfault/internal/cli/selection"
	"github.com/lockfault/lockfault/internal/explore"
	"github.com/lockfault/lockfault/internal/leases"
	"github.com/lockfault/lockfault/internal/workerpool"
	"github.com/lockfault/lockfault/internal/worlds"
	"github.com/lockfault/lockfault/reports"
	"github.com/lockfault/lockfault/scenarios"
	"github.com/lockfault/lockfault/strategies"
)

type exploreOptions struct {
	search.Options
	budget map[explore.BudgetKind]*int
	jobs   int
	// checkpoint is a file or empty, memory is a size, and shard and shardIndex are I/N or empty,
	// all as given on the command line.
	checkpoint, memory, shard, shardIndex string
	// cutElsewhere reports whether a worker of a queue ended its part of the search early.
	cutElsewhere bool
	parts        int // number of parts of a search on a queue
}

func NewCommand(a *kit.App) *cobra.Command {
	o := exploreOptions{budget: map[explore.BudgetKind]*int{}}
	o.PromoteBy = cells.ByReplicaOf
	cmd := &cobra.Command{
		Use:   "explore STRATEGY",
		Short: "Search for schedules that break a lock",
		Long: `Search all orders in which the requests of clients can reach their servers, with the
faults that the flags allow, for violations. The result has a shortest script for each
anomaly, which run and trace play like any other. If the search is exhausted, no other
anomaly exists within its bound. docs/explore.md describes what is searched, and what
is left out.

  --world       play the findings in other worlds, too; the search itself is in sim
  --random      draw random schedules, for searches that are too large to exhaust, and
                shrink the findings
  --checkpoint  continue a search that ended early when the command is started again
  --shard       search one part, on one of several machines; merge joins the parts

Exit status:
  0    no bug was found, exhausted or not
  1    a bug was found
  2    nothing was searched: the command line is invalid
  3    the lock returned an error or behaved differently when it was played again, or a
       finding differs in another world
  130  interrupted; findings until then are printed and written`,
		Example: `  lockfault explore getset-timestamp --advance 1
  lockfault explore setnx-expire --crash 1 --out found
  lockfault explore set-nx-px-lua --clients 3 --rounds 2
  lockfault explore set-nx-px-get-del --advance 1 --world sim,process
  lockfault explore redlock --advance 2 --for 8h --checkpoint redlock.ckpt
  lockfault explore redlock --nodes 3 --crash 2 --random pct --schedules 10000
  lockfault explore redlock --advance 2 --for 8h --shard 1/4 --out shard-1`,
		Args: kit.ExactArgs("the name of a strategy"),
		RunE: func(cmd *cobra.Command, args []string) error { return o.explore(cmd, a, args[0]) },
	}
	flags := cmd.Flags()
	flags.IntVar(&o.Bound.Clients, "clients", 2, "`number` of clients")
	flags.IntVar(&o.Bound.Rounds, "rounds", 1, "`number` of rounds of each client: acquire, write, release")
	flags.IntVar(&o.Bound.Replicas, "replicas", 0, "`number` of replicas of each node (default: the number of failovers)")
	flags.BoolVar(&o.Bound.Extend, "extend", false, "let a holder extend its lease once before the release; for strategies tagged @"+strategies.TagExtending)
	flags.BoolVar(&o.Bound.Reenter, "reenter", false, "let a holder try once to acquire its own lock again")
	flags.BoolVar(&o.Bound.OneThread, "one-thread", false, "give the threads of all clients the same ID, as threads of different processes may have")
	flags.IntVar(&o.Bound.Retries, "retries", 0, "`number` of times that the client library retries a command without a reply (default 0)")
	for _, f := range explore.BudgetKinds() {
		o.budget[f] = flags.Int(string(f), 0, "`number` of times that "+f.About())
	}
	flags.IntVar(&o.Bound.Moves, "moves", 0, "maximum `number` of moves of a path (default unlimited)")
	flags.IntVar(&o.Bound.States, "states", 0, "`number` of states after which the search ends (default unlimited)")
	flags.DurationVar(&o.Span, "for", 30*time.Second, "maximum real time of the search")
	flags.BoolVar(&o.Bound.UntilFirst, "until-first", false, "end at the first bug")
	flags.StringSliceVar(&o.Until, "until", nil, "`anomalies` that end the search, separated by commas (default none)")
	flags.BoolVar(&o.Bound.WithoutTables, "without-tables", false, "play every move, even if its effect is known")
	flags.IntVar(&o.jobs, "jobs", runtime.NumCPU(), "`number` of worker processes")
	flags.StringVar(&o.Out, "out", "", "`directory` for scripts, findings.json and index.html (default none)")
	flags.StringVar(&o.Drawn.Method, "random", "", "`method` of drawing random schedules instead of searching all: walk or pct; --seed selects the schedules (default none)")
	flags.IntVar(&o.Drawn.Schedules, "schedules", 0, "`number` of schedules with --random (default: as many as --for allows)")
	flags.IntVar(&o.Drawn.Depth, "pct-depth", search.DefaultDepth, "`number` of priority changes, plus one, with --random pct")
	flags.BoolVar(&o.Drawn.Shrink, "shrink", false, "shrink the script of each finding (default: only with --random)")
	flags.StringVar(&o.checkpoint, "checkpoint", "", "`file` that stores the progress, from which the same search continues (default none)")
	flags.StringVar(&o.memory, "memory", "4GiB", "`size` of this process at which the search ends, such as 512MiB, without the worker processes")
	flags.StringVar(&o.shard, "shard", "", "`I/N` for the I-th of N parts of the search, such as 1/4 (default: the whole search)")
	flags.StringVar(&o.shardIndex, "shard-index", "", "`I/N` as in --shard, but counted from 0, as in an Indexed Job of Kubernetes")
	o.Queue.AddFlags(flags, cells.QueueAbout)
	flags.IntVar(&o.parts, "parts", 0, "initial `number` of parts of a search with --queue; large parts are split while workers are idle (default: 1 for one worker, else two for each)")
	o.AddWorldFlags(cmd)
	selection.AddNoSubjectFlag(cmd)
	return cmd
}

// checkBound validates the search flags and completes o.bound.
func (o *exploreOptions) checkBound(cmd *cobra.Command) error {
	b := &o.Bound
	b.TTL = scenarios.Defaults().TTL
	if o.TTL != 0 {
		b.TTL = o.TTL
	}
	if err := cmp.Or(
		kit.UsageIf(b.Clients < 1 || b.Clients > 26, "--clients %d: give 1 to 26, which are called A to Z", b.Clients),
		kit.UsageIf(min(b.Replicas, b.Moves, b.States, b.Retries) < 0, "--replicas, --moves, --states and --retries don't take negative numbers"),
		kit.UsageIf(b.TTL < time.Second, "--ttl %v is too short for a search: give 1s at least", b.TTL),
		kit.UsageIf(o.Span <= 0, "--for %v leaves no time: give some, such as 30s", o.Span),
		kit.Between("for", o.Span, time.Nanosecond, kit.MaxDuration),
		kit.UsageIf(o.jobs < 1 || o.jobs > kit.MaxWorkers, "--jobs %d: give 1 to %d workers", o.jobs, kit.MaxWorkers),
		kit.UsageIf(!slices.Contains(o.Worlds, worlds.Sim), "--world %s: a search is in %s; name that, too", strings.Join(o.Worlds, ","), worlds.Sim),
	); err != nil {
		return err
	}
	for _, name := range o.Until {
		if !slices.Contains(checker.Anomalies(), checker.Anomaly(name)) {
			return kit.Unknown("anomaly", name, kit.AnomalyNames(), "docs/anomalies.md explains them")
		}
		b.Until = append(b.Until, checker.Anomaly(name))
	}
	if err := kit.Between("rounds", b.Rounds, 1, explore.MaxRounds); err != nil {
		return err
	}
	b.Budget = map[explore.BudgetKind]int{}
	for f, n := range o.budget {
		if err := kit.Between(string(f), *n, 0, explore.MaxBudget); err != nil {
			return err
		}
		b.Budget[f] = *n
	}
	if n := b.Budget[explore.Failover]; n > b.Replicas {
		if cmd.Flags().Changed("replicas") {
			return kit.Usage("--failover %d needs as many replicas to promote: give --replicas %d", n, n)
		}
		b.Replicas = n
	}
	if err := b.Check(); err != nil {
		return kit.Usage("that can't be searched: %v", err)
	}
	return o.checkShard(cmd)
}

func (o *exploreOptions) explore(cmd *cobra.Command, a *kit.App, name string) error {
	if err := o.Check(cmd, a); err != nil {
		return err
	}
	if err := o.checkRandom(cmd); err != nil {
		return err
	}
	if err := o.checkBound(cmd); err != nil {
		return err
	}
	list, err := o.ChooseOne(cmd, a, a.Registry, name, "name one")
	if err != nil {
		return err
	}
	if list, err = o.Observe(cmd.Context(), list); err != nil {
		return err
	}
	if s := list[0]; o.Bound.Extend && !slices.Contains(s.Tags, strategies.TagExtending) {
		return kit.Usage("--extend: %s can't be extended by its user, or does not say so with the tag %s: leave --extend out, or name one of @%[2]s", s.Name, strategies.TagExtending)
	}
	o.Bound.Lock = leases.LockOf(list[0])
	o.Bound.Nodes, o.Bound.Varies = max(1, list[0].Nodes), list[0].HistoryVaries != ""
	for _, world := range o.Worlds {
		if err := o.At(world).Check(cmd.Context(), a.Containers); err != nil {
			return kit.Exit(kit.ExitUndecided, err)
		}
	}
	if err := o.CheckOut(); err != nil {
		return err
	}
	if err := o.CheckFiles(list[0].Name); err != nil {
		return err
	}
	if err := o.checkShared(cmd); err != nil {
		return err
	}
	leave, err := o.Share(cmd, a, []string{list[0].Name})
	if err != nil {
		return err
	}
	defer leave()
	start, err := cells.StartWorker()
	if err != nil {
		return err
	}
	limit, err := kit.LimitMemory(o.memory)
	if err != nil {
		return err
	}
	defer limit.Release()
	o.Varies = list[0].HistoryVaries
	e := search.NewExplorer(&o.Settings, list[0], o.jobs, workerpool.Options{Start: start, Limit: cells.LimitOf})
	player, journal, err := o.openCheckpoint(list[0].Name, e, cmd.ErrOrStderr())
	if err != nil {
		return err
	}
	if journal != nil {
		defer journal.Close()
	}
	began := time.Now()
	line := &searchProgress{Progress: kit.NewProgress(cmd.ErrOrStderr(), 0)}
	result, err := func() (explore.Result, error) {
		defer e.Close()
		defer line.Close()
		return o.search(cmd, list[0].Name, e, player, func(r explore.Result, end context.CancelCauseFunc) {
			line.searched(r, time.Since(began))
			search.CutAt(limit, end)
		})
	}()
	if err != nil {
		return err
	}
	took := time.Since(began)
	found := make([]search.Finding, len(result.Findings))
	for i, f := range result.Findings {
		found[i] = search.Finding{Finding: f, File: search.ScriptName(list[0].Name, f.Anomaly)}
	}
	if cmd.Context().Err() == nil {
		if err := o.confirm(cmd.Context(), list[0], found); err != nil && cmd.Context().Err() == nil {
			return err
		}
	}
	if err := o.Print(cmd.OutOrStdout(), list[0].Name, result, found, took); err != nil {
		return err
	}
	if err := o.tellCheckpoint(cmd.OutOrStdout(), journal); err != nil {
		return err
	}
	if stopped := cmd.Context().Err() != nil; stopped && len(found) == 0 && o.Former() {
		return kit.Exit(kit.ExitInterrupted, fmt.Errorf("interrupted before anything was found: what is in %s is still the search before", o.Out))
	} else if o.Out != "" {
		names, err := o.originOf()
		if err != nil {
			return err
		}
		names.Command = o.Command(list[0].Name, result)
		// A user who interrupts a search wants its findings; writing them takes a moment.
		if err := o.Write(context.WithoutCancel(cmd.Context()), a.Registry, list[0].Name, result, found, names); err != nil {
			return err
		}
	}
	if cmd.Context().Err() != nil {
		return kit.Exit(kit.ExitInterrupted, nil)
	}
	err = search.Status(result, found)
	if err == nil && o.cutElsewhere {
		err = kit.Exit(kit.ExitUndecided, nil)
	}
	return err
}

// confirm plays the findings in the other worlds of --world and records the results in found. A
// finding that does not show is played again with a longer lease if possible.
func (o *exploreOptions) confirm(ctx context.Context, strategy strategies.Strategy, found []search.Finding) error {
	if len(o.Worlds) < 2 || len(found) == 0 {
		return nil
	}
	temp, err := cells.MakeTraces()
	if err != nil {
		return err
	}
	defer temp.Remove()
	var scripts []selection.Chosen
	for i := range found {
		f := &found[i]
		f.Worlds = map[string]string{}
		script, err := selection.Generated(f.File, f.Script)
		if err != nil {
			return err
		}
		scripts = append(scripts, script)
	}
	for _, world := range o.Worlds {
		if world == worlds.Sim {
			continue
		}
		var again []cells.Job
		jobs := o.Jobs(world, 0, scripts, []strategies.Strategy{strategy}, temp.Path())
		err := o.Play(ctx, world, o.jobs, jobs, func(j cells.Job, p cells.Played) error {
			f := &found[j.Number]
			f.Worlds[world] = shownIn(f, p.Cell)
			if lease := o.longer(p.Cell); f.Worlds[world] == notReproduced && lease > 0 {
				j.TTL = lease
				again = append(again, j)
			}
			return nil
		})
		if err == nil && len(again) > 0 {
			err = o.Play(ctx, world, o.jobs, slices.Values(again), func(j cells.Job, p cells.Played) error {
				f := &found[j.Number]
				f.Worlds[world] = shownIn(f, p.Cell)
				if f.Worlds[world] == search.Confirmed {
					if f.Leases == nil {
						f.Leases = map[string]string{}
					}
					f.Leases[world] = j.TTL.String()
				}
				return nil
			})
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// notReproduced is the entry of Worlds if the finding does not show in that world.
const notReproduced = "not reproduced"

// shownIn returns the entry of Worlds for the script's result c.
func shownIn(f *search.Finding, c reports.Cell) string {
	switch {
	case c.Verdict != reports.Held && c.Verdict != reports.Violated:
		return string(c.Verdict) + ": " + c.Reason
	case slices.Contains(c.Anomalies, f.Anomaly):
		return search.Confirmed
	}
	return notReproduced
}

// maxRerun is the longest run time of a script that is rerun with a longer lease.
const maxRerun = 20 * time.Second

// longer returns the lease for rerunning a cell that did not show its finding. The lease is the
// largest multiple of the cell's lease, up to the default lease, for which the run stays within
// maxRerun. longer returns 0 if the user has set --ttl, or if the lease would not at least double.
func (o *exploreOptions) longer(c reports.Cell) time.Duration {
	if o.TTL != 0 || c.Lease <= 0 {
		return 0
	}
	times := min(int64(scenarios.Defaults().TTL/c.Lease), int64(maxRerun/max(c.Virtual, time.Millisecond)))
	if times < 2 {
		return 0
	}
	return c.Lease * time.Duration(times)
}
