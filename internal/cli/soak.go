package cli

import (
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
	"github.com/lockfault/lockfault/internal/explore"
	"github.com/lockfault/lockfault/internal/shell"
	"github.com/lockfault/lockfault/internal/soak"
	"github.com/lockfault/lockfault/internal/workerpool"
	"github.com/lockfault/lockfault/internal/worlds"
	"github.com/lockfault/lockfault/reports"
	"github.com/lockfault/lockfault/strategies"
)

type soakOptions struct {
	playOptions
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

func newSoakCommand(a *app) *cobra.Command {
	var o soakOptions
	var kinds []string
	for _, k := range soak.Kinds() {
		kinds = append(kinds, fmt.Sprintf("  %-13s %s", k[0], k[1]))
	}
	cmd := &cobra.Command{
		Use:   "soak STRATEGY...",
		Short: "Count how often a lock fails under random faults",
		Long: `Let clients use a lock for hours, of virtual time unless --world says otherwise, while
random faults befall them, and count: acquires, overlaps and how long they lasted, lost
updates, outages, recoveries. Rates stand with the bounds between which they lie with 95 %
confidence: docs/soak.md says how these are reckoned.

Strategies are names, patterns or @tags, with commas or blanks between them. The time is cut
into windows, each a script of its own, which --script prints; with --out the first window
that shows an anomaly is made as small as it gets, and written there.

A nemesis is KIND:EVERY:SPAN. Faults come EVERY so often on average, and last, or move a
clock by, SPAN, or from one to another SPAN: pause:5m:1s..40s. Spans may be in leases:
20ttl, and 0.1ttl..2ttl, are what is taken for those left out. The kinds are

` + strings.Join(kinds, "\n") + `

The exit status is 0 whatever was counted, 2 if the command line makes no sense, 3 if
windows came to nothing, and 130 if it was interrupted: what was counted by then is printed.`,
		Example: `  lockfault soak set-nx-px-lua,fenced --nemesis pause:5m:10s..60s
  lockfault soak redlock --for 1000h --nemesis pause,partition,server-crash,server-clock --out soak
  lockfault soak set-nx-px-lua --nemesis failover:10m --lag 100ms
  lockfault soak set-nx-px-lua --ttl 2s --window 1m --for 10m --nemesis pause:5s --world process`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return usage("\"soak\" needs a strategy: \"%s --help\" explains it", cmd.CommandPath())
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error { return o.run(cmd, a, args) },
	}
	flags := cmd.Flags()
	flags.DurationVar(&o.length, "for", 100*time.Hour, "how long to play, all windows together, in whole windows")
	flags.DurationVar(&o.plan.Window, "window", time.Hour, "how long a window is")
	flags.IntVar(&o.plan.Clients, "clients", 5, "`number` of clients that want the lock")
	flags.DurationVar(&o.plan.Think, "think", 10*time.Second, "how long a client does something else between two rounds, on average; 0 for nothing")
	flags.DurationVar(&o.plan.Hold, "hold", time.Second, "how long an update takes, between acquire and release")
	flags.DurationVar(&o.plan.Patience, "patience", 0, "how long an acquire tries; default three leases")
	flags.StringSliceVar(&o.nemeses, "nemesis", nil, "`KIND:EVERY:SPAN` of faults, with commas between them; default none")
	flags.IntVar(&o.plan.Replicas, "replicas", 0, "`number` of replicas of each node; default 1 for failover, else none")
	flags.DurationVar(&o.plan.Lag, "lag", 0, "how late what replicas get is")
	flags.IntVar(&o.jobs, "jobs", runtime.NumCPU(), "`number` of windows to play at a time, each in a worker process")
	flags.StringVar(&o.format, "format", formatTable, "`form` of what was counted: table or json")
	flags.StringVar(&o.out, "out", "", "`directory` to write soak.json to, and a script for each anomaly")
	flags.IntVar(&o.script, "script", -1, "`number` of a window, from 0, to print and not to play")
	flags.DurationVar(&o.shrink, "shrink", 10*time.Second, "real time that may be spent on making each script of --out smaller; 0 for none")
	o.failover = byReplicaOf
	o.addWorldFlags(cmd, "`name` of the world to play in: ")
	addNoSubjectFlag(cmd)
	o.queue.addFlags(flags, "on", onAbout)
	return cmd
}

// check validates the flags and completes the plan.
func (o *soakOptions) check(cmd *cobra.Command) error {
	if err := o.playOptions.check(cmd); err != nil {
		return err
	}
	p := &o.plan
	p.Seed, p.TTL = o.seed, o.ttl
	if p.TTL == 0 {
		p.TTL = soakLease
	}
	for _, word := range o.nemeses {
		n, err := soak.ParseNemesis(word, p.TTL)
		var none *soak.UnknownKind
		switch {
		case errors.As(err, &none):
			var names []string
			for _, k := range soak.Kinds() {
				names = append(names, k[0])
			}
			return unknown("nemesis", none.Name, names, "there are "+strings.Join(names, ", "))
		case err != nil:
			return usage("--nemesis %s: %v", word, err)
		}
		if n.NeedsReplicas() && !cmd.Flags().Changed("replicas") {
			p.Replicas = 1
		}
		p.Nemeses = append(p.Nemeses, n)
	}
	span := func(name string, d, least time.Duration) error {
		if d < least || d%time.Millisecond != 0 {
			return usage("--%s %v: give %v or more, in whole milliseconds", name, d, least)
		}
		if d > longest {
			return between(name, d, least, longest)
		}
		return nil
	}
	for _, f := range []struct {
		name     string
		d, least time.Duration
	}{{"for", o.length, time.Second}, {"window", p.Window, time.Second}, {"think", p.Think, 0}, {"hold", p.Hold, time.Millisecond}, {"patience", p.Patience, 0}, {"lag", p.Lag, 0}, {"shrink", o.shrink, 0}} {
		if err := span(f.name, f.d, f.least); err != nil {
			return err
		}
	}
	p.Window = min(p.Window, o.length)
	switch {
	case len(o.worlds) > 1:
		return usage("--world %s: a soak is of one world: two can be compared", strings.Join(o.worlds, ","))
	case p.Clients < 1 || p.Clients > soak.MostClients:
		return usage("--clients %d: give 1 to %d", p.Clients, soak.MostClients)
	case p.Replicas < 0 || p.Replicas > 3:
		return usage("--replicas %d: give 0 to 3", p.Replicas)
	case p.Lag > 0 && p.Replicas == 0:
		return usage("--lag %v: without replicas nothing is late: give --replicas", p.Lag)
	case p.Replicas == 0 && slices.ContainsFunc(p.Nemeses, soak.Nemesis.NeedsReplicas):
		return usage("--nemesis failover needs a replica: leave --replicas out, or give 1 or more")
	case p.Expected() > soak.MostFaults:
		return usage("--nemesis: a window of %v would have %.0f faults, and may have %d: give a shorter --window", p.Window, p.Expected(), soak.MostFaults)
	case p.Window > 24*time.Hour:
		return usage("--window %v: give a day or less, of which there may be many", p.Window)
	case o.windows() > mostWindows:
		return usage("--for %v is more than %d windows of %v", o.length, mostWindows, p.Window)
	case cmd.Flags().Changed("script") && o.script < 0:
		return usage("--script %d: there are windows 0 to %d", o.script, o.windows()-1)
	case o.script >= o.windows():
		return usage("--script %d: there are windows 0 to %d", o.script, o.windows()-1)
	case o.jobs < 1 || o.jobs > mostWorkers:
		return between("jobs", o.jobs, 1, mostWorkers)
	case o.format != formatTable && o.format != formatJSON:
		return unknown("format", o.format, []string{formatTable, formatJSON}, "there are table and json")
	case cmd.Flags().Changed("out") && o.out == "":
		return usage("--out is empty: name a directory")
	}
	return nil
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

func (o *soakOptions) run(cmd *cobra.Command, a *app, args []string) error {
	if err := o.check(cmd); err != nil {
		return err
	}
	var words []string
	for _, arg := range args {
		words = append(words, strings.FieldsFunc(arg, func(r rune) bool { return r == ',' })...)
	}
	registry := a.naming(words)
	o.services = a.services
	list, err := chooseStrategies(registry, a.everything, words)
	if err != nil {
		return err
	}
	if list, err = o.on(list); err != nil {
		return err
	}
	for _, s := range list {
		if err := refuseProgram(cmd, s); err != nil {
			return err
		}
	}
	if o.script >= 0 && len(list) > 1 {
		return usage("--script prints the window of one strategy, and these are %d: name one", len(list))
	}
	if o.script >= 0 {
		_, err := fmt.Fprint(cmd.OutOrStdout(), o.planOf(list[0]).Script(o.script))
		return err
	}
	scripts := make([]chosen, len(list))
	for i, s := range list {
		if scripts[i], err = o.window(s, 0); err != nil {
			return err
		}
	}
	if err := o.prepare(cmd.Context(), registry, scripts, list); err != nil {
		return err
	}
	if err := o.checkOut(list); err != nil {
		return err
	}
	leave, err := o.share(cmd, a, args)
	if err != nil {
		return err
	}
	defer leave()
	progress := newProgress(cmd.ErrOrStderr(), o.windows()*len(list))
	defer progress.close()
	all := soakReport{Tool: reports.Tool, Plan: o.planText()}
	world := o.worlds[0]
	for _, s := range list {
		one := newLockSoaked(s)
		all.Locks = append(all.Locks, one)
		jobs := o.windowsOf(s)
		err := o.play(cmd.Context(), world, o.workers(cmd, world), jobs, func(j job, p played) error {
			one.add(j.Number, p)
			if progress.done++; progress.due() {
				progress.say(fmt.Sprintf("%d of %d windows%s, of %s", progress.done, progress.total, progress.left(), s.Name))
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
	progress.close()
	return o.print(cmd, &all)
}

// checkOut creates the directory of --out. A file in it that does not belong to a soak and would be
// overwritten is a usage error.
func (o *soakOptions) checkOut(list []strategies.Strategy) error {
	if o.out == "" {
		return nil
	}
	file := filepath.Join(o.out, soakFile)
	if err := makeOut(o.out, soakFile); err != nil {
		return usage("--out: %v", pathErrorText(err))
	}
	former, err := readSoaked(o.out)
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return usage("--out: %s is of no soak, and would be lost: name another directory, or remove it", file)
	}
	for _, s := range list {
		if err := checkScripts(o.out, s.Name, former.files()); err != nil {
			return err
		}
	}
	return nil
}

// workers returns the number of windows played at a time. The number is --jobs if given, or a
// multiple of its default in real time, where windows mostly wait.
func (o *soakOptions) workers(cmd *cobra.Command, world string) int {
	if cmd.Flags().Changed("jobs") {
		return o.jobs
	}
	return min(o.at(world).Crowd()*o.jobs, o.windows())
}

// window returns the script of window n.
func (o *soakOptions) window(s strategies.Strategy, n int) (chosen, error) {
	return written(windowName(n)+scriptSuffix, o.planOf(s).Script(n))
}

func windowName(n int) string { return fmt.Sprintf("window-%d", n) }

// windowsOf yields the job of each window.
func (o *soakOptions) windowsOf(s strategies.Strategy) iter.Seq[job] {
	plan := o.planOf(s)
	return func(yield func(job) bool) {
		for n := range o.windows() {
			name := windowName(n)
			j := job{
				Number: n, Strategy: s.Name, Scenario: name, File: name + scriptSuffix, Source: []byte(plan.Script(n)),
				Place: o.at(o.worlds[0]), Seed: o.seedOf(n), TTL: plan.TTL, Limit: o.cellTimeout, Nodes: o.nodesOf(s), Isolated: o.isolated(s), Count: true,
			}
			if !yield(j) {
				return
			}
		}
	}
}

// seedOf returns the seed of a window. seedOf does not depend on the worker that plays the window.
func (o *soakOptions) seedOf(window int) uint64 { return o.seed + uint64(window) }

// incidents adds to one, for each anomaly, the shrunk script of the first window that showed it.
func (o *soakOptions) incidents(ctx context.Context, s strategies.Strategy, one *lockSoaked, progress *progress) error {
	for _, anomaly := range checker.Anomalies() {
		first, ok := one.first[anomaly]
		if !ok {
			continue
		}
		if progress.due() {
			progress.say(fmt.Sprintf("making the script of %s with %s smaller", anomaly, s.Name))
		}
		text, said, err := o.small(ctx, s, anomaly, first)
		if err != nil {
			return err
		}
		file := filepath.Join(o.out, scriptOf(s.Name, anomaly))
		one.Incidents = append(one.Incidents, incident{
			Anomaly: anomaly, Window: first.window, Seed: o.seedOf(first.window), File: filepath.Base(file), Steps: said,
			Command: o.replay(s, file, first.window), script: text,
		})
	}
	return nil
}

// replay returns the command that plays the script of a window.
func (o *soakOptions) replay(s strategies.Strategy, file string, window int) string {
	text := fmt.Sprintf("%s trace %s %s --seed %d", product, shell.Quote(s.Name), shell.Quote(file), o.seedOf(window))
	if n := o.nodesOf(s); n > 0 {
		text += fmt.Sprintf(" --nodes %d", n)
	}
	return text
}

// small returns the script of the window that showed an anomaly, shrunk as far as --shrink allows,
// and text on the number of steps. small first tries a window cut off two leases after the anomaly,
// which begins with the same faults. Windows of real worlds are not shrunk.
func (o *soakOptions) small(ctx context.Context, s strategies.Strategy, anomaly checker.Anomaly, first firstSeen) (text, said string, err error) {
	plan := o.planOf(s)
	text, said = plan.Script(first.window), "all of its steps"
	if o.shrink == 0 || o.worlds[0] != worlds.Sim {
		return text, said, nil
	}
	start, err := startWorker()
	if err != nil {
		return text, said, err
	}
	options := o.playOptions
	options.seed = o.seedOf(first.window)
	e := newExplorer(&exploreOptions{playOptions: options}, s, o.jobs, workerpool.Options{Start: start, Limit: limitOf})
	defer e.close()
	within, cancel := context.WithTimeout(ctx, o.shrink)
	defer cancel()
	for _, window := range []time.Duration{min(plan.Window, first.at+2*plan.TTL), plan.Window} {
		p := plan
		p.Window = window.Round(time.Millisecond)
		shrunk, err := explore.Shrink(within, e, windowName(first.window)+scriptSuffix, []byte(p.Script(first.window)), anomaly)
		if shrunk.Script != "" {
			text, said = shrunk.Script, fmt.Sprintf("%d of %d steps", shrunk.Units, shrunk.From)
		}
		if err == nil || within.Err() != nil {
			break
		}
	}
	return text, said, ctx.Err()
}

// planText returns the plan in the form of the report.
func (o *soakOptions) planText() soakPlan {
	p := soakPlan{World: o.worlds[0], Windows: o.windows(), Window: o.plan.Window, Clients: o.plan.Clients, Think: o.plan.Think, Hold: o.plan.Hold,
		TTL: o.plan.TTL, Replicas: o.plan.Replicas, Lag: o.plan.Lag, Seed: o.plan.Seed, Nemeses: []string{}}
	for _, n := range o.plan.Nemeses {
		p.Nemeses = append(p.Nemeses, n.String())
	}
	return p
}

// finite returns &x, or nil for infinities and NaN, which JSON cannot represent.
func finite(x float64) *float64 {
	if math.IsInf(x, 0) || math.IsNaN(x) {
		return nil
	}
	return &x
}
