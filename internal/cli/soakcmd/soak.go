// Package soakcmd is the command soak: it plays windows of random faults and counts what happens.
package soakcmd

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"math"
	"path/filepath"
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
	"github.com/lockfault/lockfault/internal/shell"
	"github.com/lockfault/lockfault/internal/soak"
	"github.com/lockfault/lockfault/internal/workerpool"
	"github.com/lockfault/lockfault/internal/worlds"
	"github.com/lockfault/lockfault/reports"
	"github.com/lockfault/lockfault/strategies"
)

type soakOptions struct {
	cells.Settings
	plan    soak.Plan
	length  time.Duration
	nemeses []string
	jobs    int
	format  string
	out     string
	script  int
	shrink  time.Duration
}

// soakLease is the default lease of a soak.
const soakLease = 30 * time.Second

// mostWindows is the largest number of windows of a soak.
const mostWindows = 10_000_000

func NewCommand(a *kit.App) *cobra.Command {
	var o soakOptions
	kinds := kit.Each(soak.Kinds(), func(k [2]string) string { return fmt.Sprintf("  %-13s %s", k[0], k[1]) })
	cmd := &cobra.Command{
		Use:   "soak STRATEGY...",
		Short: "Count lock failures under random faults",
		Long: `Let clients use a lock for hours while random faults happen. Time is simulated unless
--world selects another world. Count acquires, overlaps and their durations, lost updates,
outages and recoveries. Rates are printed with confidence intervals of 95 %, which
docs/soak.md defines.

Strategies are names, patterns or @tags, separated by commas or blanks. The time is divided
into windows. Each window is a script of its own, which --script prints. With --out, the first
window that shows an anomaly is shrunk and written.

A nemesis is KIND:EVERY:SPAN. Faults of that kind happen once per EVERY on average. Each lasts
for SPAN, or moves a clock by SPAN. SPAN may be a range: pause:5m:1s..40s. Durations may be
multiples of the lease, such as the default EVERY, 20ttl, and the default SPAN, 0.1ttl..2ttl.
The kinds are

` + strings.Join(kinds, "\n") + `

Exit status:
  0    all windows were played, and no lock of your own showed a bug
  1    a lock of your own showed a bug
  2    the command line is invalid
  3    a window is undecided or in error
  130  interrupted; the counts until then are printed`,
		Example: `  lockfault soak set-nx-px-lua,fenced --nemesis pause:5m:10s..60s
  lockfault soak redlock --for 1000h --nemesis pause,partition,server-crash,server-clock --out soak
  lockfault soak set-nx-px-lua --nemesis failover:10m --lag 100ms
  lockfault soak set-nx-px-lua --ttl 2s --window 1m --for 10m --nemesis pause:5s --world process`,
		Args: kit.SomeArgs("a strategy"),
		RunE: func(cmd *cobra.Command, args []string) error { return o.run(cmd, a, args) },
	}
	flags := cmd.Flags()
	flags.DurationVar(&o.length, "for", 100*time.Hour, "duration of all windows together, in whole windows")
	flags.DurationVar(&o.plan.Window, "window", time.Hour, "duration of a window")
	flags.IntVar(&o.plan.Clients, "clients", 5, "`number` of clients that want the lock")
	flags.DurationVar(&o.plan.Think, "think-time", 10*time.Second, "average time between two rounds of a client; 0 for no pause")
	flags.DurationVar(&o.plan.Hold, "hold-time", time.Second, "duration of an update, between acquire and release")
	flags.DurationVar(&o.plan.Patience, "acquire-timeout", 0, "maximum duration of an acquire (default: three leases)")
	flags.StringSliceVar(&o.nemeses, "nemesis", nil, "`KIND:EVERY:SPAN` of faults, separated by commas (default none)")
	flags.IntVar(&o.plan.Replicas, "replicas", 0, "`number` of replicas of each node (default: 1 for failover, else 0)")
	flags.DurationVar(&o.plan.Lag, "lag", 0, "replication lag (default 0s)")
	flags.IntVar(&o.jobs, "jobs", runtime.NumCPU(), "`number` of windows to play in parallel, each in a worker process")
	flags.StringVar(&o.format, "format", kit.FormatTable, "`format` of the counts: table or json")
	flags.StringVar(&o.out, "out", "", "`directory` for soak.json and a script for each anomaly (default none)")
	flags.IntVar(&o.script, "script", -1, "`number` of a window, from 0, to print instead of playing it")
	flags.DurationVar(&o.shrink, "shrink", 10*time.Second, "maximum real time for shrinking each script of --out; 0 to not shrink")
	o.PromoteBy = cells.ByReplicaOf
	o.AddWorldFlags(cmd)
	selection.AddNoSubjectFlag(cmd)
	o.Queue.AddFlags(flags, cells.QueueAbout)
	return cmd
}

// check validates the flags and completes the plan.
func (o *soakOptions) check(cmd *cobra.Command, a *kit.App) error {
	if err := o.Settings.Check(cmd, a); err != nil {
		return err
	}
	p := &o.plan
	p.Seed, p.TTL, p.Nemeses = o.Seed, o.TTL, []soak.Nemesis{} // an empty list in JSON, not null
	if p.TTL == 0 {
		p.TTL = soakLease
	}
	for _, word := range o.nemeses {
		n, err := soak.ParseNemesis(word, p.TTL)
		var none *soak.UnknownKind
		switch {
		case errors.As(err, &none):
			return kit.OneOf("nemesis", none.Name, kit.Each(soak.Kinds(), func(kind [2]string) string { return kind[0] }))
		case err != nil:
			return kit.Usage("--nemesis %s: %v", word, err)
		}
		if n.NeedsReplicas() && !cmd.Flags().Changed("replicas") {
			p.Replicas = 1
		}
		p.Nemeses = append(p.Nemeses, n)
	}
	for _, f := range []struct {
		name     string
		d, least time.Duration
	}{{"for", o.length, time.Second}, {"window", p.Window, time.Second}, {"think-time", p.Think, 0}, {"hold-time", p.Hold, time.Millisecond}, {"acquire-timeout", p.Patience, 0}, {"lag", p.Lag, 0}, {"shrink", o.shrink, 0}} {
		if err := cmp.Or(
			kit.UsageIf(f.d < f.least || f.d%time.Millisecond != 0, "--%s %v: give %v or more, in whole milliseconds", f.name, f.d, f.least),
			kit.Between(f.name, f.d, f.least, kit.MaxDuration),
		); err != nil {
			return err
		}
	}
	p.Window = min(p.Window, o.length)
	changed := cmd.Flags().Changed
	noReplica := p.Replicas == 0 && slices.ContainsFunc(p.Nemeses, soak.Nemesis.NeedsReplicas)
	return cmp.Or(
		kit.UsageIf(len(o.Worlds) > 1, "--world %s: a soak is of one world: two can be compared", strings.Join(o.Worlds, ",")),
		kit.UsageIf(p.Clients < 1 || p.Clients > soak.MostClients, "--clients %d: give 1 to %d", p.Clients, soak.MostClients),
		kit.UsageIf(p.Replicas < 0 || p.Replicas > 3, "--replicas %d: give 0 to 3", p.Replicas),
		kit.UsageIf(p.Lag > 0 && p.Replicas == 0, "--lag %v: without replicas nothing is late: give --replicas", p.Lag),
		kit.UsageIf(noReplica, "--nemesis failover needs a replica: leave --replicas out, or give 1 or more"),
		kit.UsageIf(p.Expected() > soak.MostFaults, "--nemesis: a window of %v would have %.0f faults, and may have %d: give a shorter --window", p.Window, p.Expected(), soak.MostFaults),
		kit.UsageIf(p.Window > 24*time.Hour, "--window %v: give a day or less, of which there may be many", p.Window),
		kit.UsageIf(o.windows() > mostWindows, "--for %v is more than %d windows of %v", o.length, mostWindows, p.Window),
		kit.UsageIf(changed("script") && o.script < 0 || o.script >= o.windows(), "--script %d: there are windows 0 to %d", o.script, o.windows()-1),
		kit.Between("jobs", o.jobs, 1, kit.MaxWorkers),
		kit.OneOf("format", o.format, []string{kit.FormatTable, kit.FormatJSON}),
		kit.UsageIf(changed("out") && o.out == "", "--out is empty: name a directory"),
	)
}

// windows returns the number of windows.
func (o *soakOptions) windows() int {
	return int((o.length + o.plan.Window - 1) / o.plan.Window)
}

// planOf returns the plan for a strategy, with the strategy's number of nodes.
func (o *soakOptions) planOf(s strategies.Strategy) soak.Plan {
	p := o.plan
	p.Nodes = max(1, s.Nodes)
	return p
}

func (o *soakOptions) run(cmd *cobra.Command, a *kit.App, args []string) error {
	if err := o.check(cmd, a); err != nil {
		return err
	}
	var words []string
	for _, arg := range args {
		words = append(words, strings.FieldsFunc(arg, func(r rune) bool { return r == ',' })...)
	}
	registry := selection.RegistryFor(a, words)
	list, err := selection.ChooseStrategies(a, registry, words)
	if err != nil {
		return err
	}
	if list, err = o.OnNodes(list); err != nil {
		return err
	}
	for _, s := range list {
		if err := selection.RefuseProgram(cmd, s); err != nil {
			return err
		}
	}
	if o.script >= 0 && len(list) > 1 {
		return kit.Usage("--script prints the window of one strategy, and these are %d: name one", len(list))
	}
	if o.script >= 0 {
		_, err := fmt.Fprint(cmd.OutOrStdout(), o.planOf(list[0]).Script(o.script))
		return err
	}
	scripts := make([]selection.Chosen, len(list))
	for i, s := range list {
		if scripts[i], err = o.window(s, 0); err != nil {
			return err
		}
	}
	if err := o.Prepare(cmd.Context(), registry, scripts, list); err != nil {
		return err
	}
	if err := o.checkOut(list); err != nil {
		return err
	}
	leave, err := o.Share(cmd, a, args)
	if err != nil {
		return err
	}
	defer leave()
	if list, err = o.Observe(cmd.Context(), list); err != nil {
		return err
	}
	progress := kit.NewProgress(cmd.ErrOrStderr(), o.windows()*len(list))
	defer progress.Close()
	all := soakReport{Tool: reports.Tool, Plan: soakPlan{o.Worlds[0], o.windows(), o.plan}}
	world := o.Worlds[0]
	for _, s := range list {
		one := newLockSoaked(s)
		all.Locks = append(all.Locks, one)
		jobs := o.windowsOf(s)
		err := o.Play(cmd.Context(), world, o.Workers(cmd, world, o.jobs), jobs, func(j cells.Job, p cells.Played) error {
			one.add(j.Number, p)
			if progress.Done++; progress.Due() {
				progress.Say(fmt.Sprintf("%d of %d windows%s, of %s", progress.Done, progress.Total, progress.Left(), s.Name))
			}
			return nil
		})
		if err != nil && !errors.Is(err, context.Canceled) {
			return err
		}
		if all.Interrupted = err != nil; all.Interrupted {
			break
		}
	}
	if o.out != "" && !all.Interrupted {
		for i, one := range all.Locks {
			err := o.incidents(cmd.Context(), list[i], one, progress)
			if all.Interrupted = errors.Is(err, context.Canceled); all.Interrupted {
				break
			}
			if err != nil {
				return err
			}
		}
	}
	progress.Close()
	return o.print(cmd, &all)
}

// CheckOut creates the directory of --out. A file in it that does not belong to a soak and would be
// overwritten is a usage error.
func (o *soakOptions) checkOut(list []strategies.Strategy) error {
	if o.out == "" {
		return nil
	}
	file := filepath.Join(o.out, soakFile)
	if err := kit.MakeOut(o.out, soakFile); err != nil {
		return kit.Usage("--out: %v", kit.PathErrorText(err))
	}
	former, err := readSoaked(o.out)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return kit.Usage("--out: %s is of no soak, and would be lost: name another directory, or remove it", file)
	}
	for _, s := range list {
		if err := search.CheckScripts(o.out, s.Name, former.files()); err != nil {
			return err
		}
	}
	return nil
}

// window returns the script of window n.
func (o *soakOptions) window(s strategies.Strategy, n int) (selection.Chosen, error) {
	return selection.Generated(windowName(n)+selection.ScriptSuffix, o.planOf(s).Script(n))
}

func windowName(n int) string { return fmt.Sprintf("window-%d", n) }

// windowsOf yields the job of each window.
func (o *soakOptions) windowsOf(s strategies.Strategy) iter.Seq[cells.Job] {
	plan := o.planOf(s)
	return func(yield func(cells.Job) bool) {
		for n := range o.windows() {
			name := windowName(n)
			j := o.Job(s)
			j.Number, j.Scenario, j.File, j.Source = n, name, name+selection.ScriptSuffix, []byte(plan.Script(n))
			j.Place, j.TTL, j.Seed, j.Count = o.At(o.Worlds[0]), plan.TTL, o.seedOf(n), true
			if !yield(j) {
				return
			}
		}
	}
}

// seedOf returns the seed of a window. seedOf does not depend on the worker that plays the window.
func (o *soakOptions) seedOf(window int) uint64 { return o.Seed + uint64(window) }

// incidents adds to one, for each anomaly, the shrunk script of the first window that showed it.
func (o *soakOptions) incidents(ctx context.Context, s strategies.Strategy, one *lockSoaked, progress *kit.Progress) error {
	for _, anomaly := range checker.Anomalies() {
		first, ok := one.first[anomaly]
		if !ok {
			continue
		}
		if progress.Due() {
			progress.Say(fmt.Sprintf("making the script of %s with %s smaller", anomaly, s.Name))
		}
		text, said, err := o.small(ctx, s, anomaly, first)
		if err != nil {
			return err
		}
		file := filepath.Join(o.out, search.ScriptName(s.Name, anomaly))
		one.Incidents = append(one.Incidents, incident{
			Anomaly: anomaly, Window: first.window, Seed: o.seedOf(first.window), File: filepath.Base(file), Steps: said,
			Command: o.replay(s, file, first.window), script: text,
		})
	}
	return nil
}

// replay returns the command that plays the script of a window.
func (o *soakOptions) replay(s strategies.Strategy, file string, window int) string {
	command := shell.Command{kit.Product, "trace", s.Name, file, "--seed", fmt.Sprint(o.seedOf(window))}
	command.Flag(o.NodesOf(s) > 0, "nodes", o.NodesOf(s))
	return shell.Line(command)
}

// small returns the script of the window that showed an anomaly, shrunk as far as --shrink allows,
// and text on the number of steps. small first tries a window cut off two leases after the anomaly,
// which begins with the same faults. Windows of real worlds are not shrunk.
func (o *soakOptions) small(ctx context.Context, s strategies.Strategy, anomaly checker.Anomaly, first firstSeen) (text, said string, err error) {
	plan := o.planOf(s)
	text, said = plan.Script(first.window), "all of its steps"
	if o.shrink == 0 || o.Worlds[0] != worlds.Sim {
		return text, said, nil
	}
	start, err := cells.StartWorker()
	if err != nil {
		return text, said, err
	}
	options := o.Settings
	options.Seed = o.seedOf(first.window)
	e := search.NewExplorer(&options, s, o.jobs, workerpool.Options{Start: start, Limit: cells.LimitOf})
	defer e.Close()
	within, cancel := context.WithTimeout(ctx, o.shrink)
	defer cancel()
	for _, window := range []time.Duration{min(plan.Window, first.at+2*plan.TTL), plan.Window} {
		p := plan
		p.Window = window.Round(time.Millisecond)
		shrunk, err := explore.Shrink(within, e, windowName(first.window)+selection.ScriptSuffix, []byte(p.Script(first.window)), anomaly)
		if shrunk.Script != "" {
			text, said = shrunk.Script, fmt.Sprintf("%d of %d steps", shrunk.Units, shrunk.From)
		}
		if err == nil || within.Err() != nil {
			break
		}
	}
	return text, said, ctx.Err()
}

// finite returns &x, or nil for infinities and NaN, which JSON cannot represent.
func finite(x float64) *float64 {
	if math.IsInf(x, 0) || math.IsNaN(x) {
		return nil
	}
	return &x
}
