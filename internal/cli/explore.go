package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/lockfault/lockfault/checker"
	"github.com/lockfault/lockfault/internal/explore"
	"github.com/lockfault/lockfault/internal/input"
	"github.com/lockfault/lockfault/internal/workerpool"
	"github.com/lockfault/lockfault/internal/worlds"
	"github.com/lockfault/lockfault/reports"
	"github.com/lockfault/lockfault/scenarios"
	"github.com/lockfault/lockfault/strategies"
)

type exploreOptions struct {
	playOptions
	drawn  randomOptions
	bound  explore.Bound
	budget map[explore.Fault]*int
	jobs   int
	span   time.Duration
	until  []string
	out    string
	// checkpoint is a file or empty, memory is a size, and shard and shardIndex are I/N or empty,
	// all as given on the command line.
	checkpoint, memory, shard, shardIndex string
	// doubled reports whether states and moves are sums over shards that may count some of them
	// twice.
	doubled bool
	// cutElsewhere reports whether a worker of a queue ended its part of the search early.
	cutElsewhere bool
	parts        int    // number of parts of a search on a queue
	varies       string // why another search may differ; see [strategies.Strategy.HistoryVaries]
}

func newExploreCommand(a *app) *cobra.Command {
	o := exploreOptions{budget: map[explore.Fault]*int{}}
	o.failover = byReplicaOf // here --failover is a fault, not a mode
	cmd := &cobra.Command{
		Use:   "explore STRATEGY",
		Short: "Search for schedules that break a lock, or see that there are none",
		Long: `Search all orders in which the requests of some clients can reach their servers,
with as many faults as are allowed, for those that violate something. For each
anomaly a shortest script is kept, which run and trace play like any other. If the
search is exhausted, nothing else goes wrong within its bound.

What is searched, and what is left out: docs/explore.md.

With --random, schedules are drawn by chance, for what is too large to see it all,
and what is found is shrunk.

With --checkpoint, a search that ended early, however, goes on when it is started
again. With --shard it is one part of a search on several machines, which merge
joins.

The exit status is 0 if nothing was found, 1 if something was, 3 if the lock ended
in an error or came out differently when it was played again, or a finding differs
in another world, and 130 if the search was interrupted. What was found until then
is told and written all the same.`,
		Example: `  lockfault explore getset-timestamp --advance 1
  lockfault explore setnx-expire --crash 1 --out found
  lockfault explore set-nx-px-lua --clients 3 --rounds 2
  lockfault explore set-nx-px-get-del --advance 1 --world sim,process
  lockfault explore redlock --advance 2 --for 8h --checkpoint redlock.ckpt
  lockfault explore redlock --nodes 3 --crash 2 --random pct --schedules 10000
  lockfault explore redlock --advance 2 --for 8h --shard 1/4 --out shard-1`,
		Args: exactArgs("the name of a strategy"),
		RunE: func(cmd *cobra.Command, args []string) error { return o.explore(cmd, a, args[0]) },
	}
	flags := cmd.Flags()
	flags.IntVar(&o.bound.Clients, "clients", 2, "`number` of clients")
	flags.IntVar(&o.bound.Rounds, "rounds", 1, "`number` of times that each client tries to get the lock, writes and releases it")
	flags.IntVar(&o.bound.Replicas, "replicas", 0, "`number` of replicas of each node; default as many as failovers")
	flags.BoolVar(&o.bound.Extend, "extend", false, "let a holder extend its lease once before it releases; for strategies tagged @"+strategies.TagExtending)
	flags.BoolVar(&o.bound.Reenter, "reenter", false, "let a holder try once to get the lock that it has")
	flags.BoolVar(&o.bound.OneThread, "one-thread", false, "give the threads of all clients one id, as those of several processes may have")
	flags.IntVar(&o.bound.Retries, "retries", 0, "how often, a `number`, clients' libraries repeat a command that got no answer")
	for _, f := range explore.Faults() {
		o.budget[f] = flags.Int(string(f), 0, "`number` of times that "+f.About())
	}
	flags.IntVar(&o.bound.Moves, "moves", 0, "longest path that is followed, a `number` of moves; default any")
	flags.IntVar(&o.bound.States, "states", 0, "`number` of states after which the search ends; default any")
	flags.DurationVar(&o.span, "for", 30*time.Second, "real time that the search may take")
	flags.BoolVar(&o.bound.UntilFirst, "until-first", false, "end with the first anomaly")
	flags.StringSliceVar(&o.until, "until", nil, "end with the first of these `anomalies`, with commas between them")
	flags.BoolVar(&o.bound.WithoutTables, "without-tables", false, "play every move, also those of which it is known what they do")
	flags.IntVar(&o.jobs, "jobs", runtime.NumCPU(), "`number` of worker processes")
	flags.StringVar(&o.out, "out", "", "`directory` to write scripts, findings.json and index.html to; default none")
	o.drawn.addFlags(flags)
	o.addCheckpointFlag(flags)
	o.addMemoryFlag(flags)
	o.addShardFlag(flags)
	o.queue.addFlags(flags, "on", onAbout)
	flags.IntVar(&o.parts, "parts", 0, "`number` of parts that --on has a search cut into at first, and large ones again while workers have nothing to do; default twice as many as there are workers, or one for one")
	o.addWorldFlags(cmd, "`names` of the worlds to play findings in, with commas between them; the search itself is in sim: ")
	addNoSubjectFlag(cmd)
	return cmd
}

// mostWorkers is the largest useful number of worker processes of a search.
const mostWorkers = 256

// checkBound validates the search flags and completes o.bound.
func (o *exploreOptions) checkBound(cmd *cobra.Command) error {
	b := &o.bound
	b.TTL = scenarios.Defaults().TTL
	if o.ttl != 0 {
		b.TTL = o.ttl
	}
	switch {
	case b.Clients < 1 || b.Clients > 26:
		return usage("--clients %d: give 1 to 26, which are called A to Z", b.Clients)
	case b.Replicas < 0 || b.Moves < 0 || b.States < 0 || b.Retries < 0:
		return usage("--replicas, --moves, --states and --retries don't take negative numbers")
	case b.TTL < time.Second:
		return usage("--ttl %v is too short for a search: give 1s at least", b.TTL)
	case o.span <= 0:
		return usage("--for %v leaves no time: give some, such as 30s", o.span)
	case o.span > longest:
		return between("for", o.span, time.Nanosecond, longest)
	case o.jobs < 1 || o.jobs > mostWorkers:
		return usage("--jobs %d: give 1 to %d workers", o.jobs, mostWorkers)
	case !slices.Contains(o.worlds, worlds.Sim):
		return usage("--world %s: a search is in %s; name that, too", strings.Join(o.worlds, ","), worlds.Sim)
	}
	for _, name := range o.until {
		if !slices.Contains(checker.Anomalies(), checker.Anomaly(name)) {
			var all []string
			for _, a := range checker.Anomalies() {
				all = append(all, string(a))
			}
			return unknown("anomaly", name, all, "docs/anomalies.md explains them")
		}
		b.Until = append(b.Until, checker.Anomaly(name))
	}
	if err := between("rounds", b.Rounds, 1, explore.MaxRounds); err != nil {
		return err
	}
	b.Budget = map[explore.Fault]int{}
	for f, n := range o.budget {
		if err := between(string(f), *n, 0, explore.MaxBudget); err != nil {
			return err
		}
		b.Budget[f] = *n
	}
	if n := b.Budget[explore.Failover]; n > b.Replicas {
		if cmd.Flags().Changed("replicas") {
			return usage("--failover %d needs as many replicas to promote: give --replicas %d", n, n)
		}
		b.Replicas = n
	}
	if err := b.Check(); err != nil {
		return usage("that can't be searched: %v", err)
	}
	return o.checkShard(cmd)
}

// checkOut creates the directory of --out, if it is set, and checks that it can be written to.
func (o *exploreOptions) checkOut() error {
	if o.out == "" {
		return nil
	}
	if err := makeOut(o.out, findingsFile, reports.HTMLFile); err != nil {
		return usage("--out: %v", err)
	}
	if err := reports.CheckFindingsPage(o.out); err != nil {
		return usage("--out: %v", err)
	}
	return nil
}

// checkFiles returns a usage error if a file in --out does not belong to a search and would be
// overwritten.
func (o *exploreOptions) checkFiles(strategy string) error {
	if o.out == "" {
		return nil
	}
	former, err := readSearch(o.out)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		former = &search{}
	case err != nil:
		return usage("--out: %s is of no search, and would be lost: name another directory, or remove it", filepath.Join(o.out, findingsFile))
	}
	var ours []string
	for _, f := range former.Findings {
		ours = append(ours, f.File)
	}
	return checkScripts(o.out, strategy, ours)
}

// scriptOf returns the file name of the script with which a strategy shows an anomaly.
func scriptOf(strategy string, a checker.Anomaly) string {
	return strategy + "-" + string(a) + scriptSuffix
}

// checkScripts returns a usage error if a file that is not listed in ours would be overwritten by a
// script.
func checkScripts(dir, strategy string, ours []string) error {
	for _, a := range checker.Anomalies() {
		file := filepath.Join(dir, scriptOf(strategy, a))
		if info, err := os.Lstat(file); err == nil && (!info.Mode().IsRegular() || !slices.Contains(ours, filepath.Base(file))) {
			return usage("--out: %s is none of what was written there, and may be lost: name another directory, or remove it", file)
		}
	}
	return nil
}

// former reports whether --out holds a previous search.
func (o *exploreOptions) former() bool {
	if o.out == "" {
		return false
	}
	_, err := readSearch(o.out)
	return err == nil
}

func (o *exploreOptions) explore(cmd *cobra.Command, a *app, name string) error {
	if err := o.check(cmd); err != nil {
		return err
	}
	if err := o.drawn.check(cmd); err != nil {
		return err
	}
	if err := o.checkBound(cmd); err != nil {
		return err
	}
	list, err := chooseStrategies(a.registry, a.everything, []string{name})
	if err != nil {
		return err
	}
	if len(list) > 1 {
		return usage("%q names %d strategies: name one", name, len(list))
	}
	if err := refuseProgram(cmd, list[0]); err != nil {
		return err
	}
	if list, err = o.on(list); err != nil {
		return err
	}
	if s := list[0]; o.bound.Extend && !slices.Contains(s.Tags, strategies.TagExtending) {
		return usage("--extend: %s can't be extended by its user, or doesn't say so with the tag %s: leave --extend out, or name one of @%[2]s", s.Name, strategies.TagExtending)
	}
	o.bound.Nodes, o.bound.Varies = max(1, list[0].Nodes), list[0].HistoryVaries != ""
	for _, world := range o.worlds {
		if err := o.at(world).Check(cmd.Context()); err != nil {
			return &statusError{ExitUndecided, err}
		}
	}
	if err := o.checkOut(); err != nil {
		return err
	}
	if err := o.checkFiles(list[0].Name); err != nil {
		return err
	}
	if err := o.checkShared(cmd); err != nil {
		return err
	}
	leave, err := o.share(cmd, a, []string{list[0].Name})
	if err != nil {
		return err
	}
	defer leave()
	start, err := startWorker()
	if err != nil {
		return err
	}
	limit, err := limitMemory(o.memory)
	if err != nil {
		return err
	}
	defer limit.release()
	o.varies = list[0].HistoryVaries
	e := newExplorer(o, list[0], o.jobs, workerpool.Options{Start: start, Limit: limitOf})
	player, journal, err := o.openCheckpoint(list[0].Name, e, cmd.ErrOrStderr())
	if err != nil {
		return err
	}
	defer journal.Close()
	began := time.Now()
	line := newProgress(cmd.ErrOrStderr(), 0)
	result, err := func() (explore.Result, error) {
		defer e.close()
		defer line.close()
		return o.search(cmd, list[0].Name, e, player, func(r explore.Result, end context.CancelCauseFunc) {
			line.searched(r, time.Since(began))
			limit.check(end)
		})
	}()
	if err != nil {
		return err
	}
	took := time.Since(began)
	found := make([]finding, len(result.Findings))
	for i, f := range result.Findings {
		found[i] = finding{Finding: f, File: scriptOf(list[0].Name, f.Anomaly)}
	}
	if cmd.Context().Err() == nil {
		if err := o.confirm(cmd.Context(), list[0], found); err != nil && cmd.Context().Err() == nil {
			return err
		}
	}
	if err := o.print(cmd.OutOrStdout(), list[0].Name, result, found, took); err != nil {
		return err
	}
	if err := o.tellCheckpoint(cmd.OutOrStdout(), journal); err != nil {
		return err
	}
	if stopped := cmd.Context().Err() != nil; stopped && len(found) == 0 && o.former() {
		return &statusError{ExitInterrupted, fmt.Errorf("interrupted before anything was found: what is in %s is still the search before", o.out)}
	} else if o.out != "" {
		names, err := o.shardNames()
		if err != nil {
			return err
		}
		names.Command = o.command(list[0].Name, result)
		// A user who interrupts a search wants its findings; writing them takes a moment.
		if err := o.write(context.WithoutCancel(cmd.Context()), a.registry, list[0].Name, result, found, names); err != nil {
			return err
		}
	}
	if cmd.Context().Err() != nil {
		return &statusError{ExitInterrupted, nil}
	}
	err = statusOf(result, found)
	if err == nil && o.cutElsewhere {
		err = &statusError{ExitUndecided, nil}
	}
	return err
}

// statusOf returns the exit status of a search that was not interrupted, or nil for status 0.
func statusOf(result explore.Result, found []finding) error {
	differs := slices.ContainsFunc(found, func(f finding) bool {
		for _, said := range f.Worlds {
			if said != confirmed {
				return true
			}
		}
		return false
	})
	switch {
	case len(result.Failures) > 0 || differs:
		return &statusError{ExitUndecided, nil}
	case len(found) > 0:
		return &statusError{ExitDiffers, nil}
	}
	return nil
}

// finding is a finding of a search, with its results in other worlds.
type finding struct {
	explore.Finding
	File string `json:"file"`
	// Worlds says for each other world whether the script shows the same anomaly there.
	Worlds map[string]string `json:"worlds,omitempty"`
	// Leases holds the lease for each world where the script needs a longer one than usual. A lock
	// that acts by its own clock, for example to give up on a node, does so at other fractions of a
	// shorter lease.
	Leases map[string]string `json:"leases,omitempty"`
}

// confirmed is the entry of Worlds if the finding shows the same anomaly in that world.
const confirmed = "confirmed"

// confirm plays the findings in the other worlds of --world and records the results in found. A
// finding that does not show is played again with a longer lease if possible.
func (o *exploreOptions) confirm(ctx context.Context, strategy strategies.Strategy, found []finding) error {
	if len(o.worlds) < 2 || len(found) == 0 {
		return nil
	}
	temp, err := makeTraces()
	if err != nil {
		return err
	}
	defer temp.Remove()
	var scripts []chosen
	for i := range found {
		f := &found[i]
		f.Worlds = map[string]string{}
		script, err := written(f.File, f.Script)
		if err != nil {
			return err
		}
		scripts = append(scripts, script)
	}
	for _, world := range o.worlds {
		if world == worlds.Sim {
			continue
		}
		jobs := o.cells(world, 0, scripts, []strategies.Strategy{strategy}, temp.Path())
		var again []job
		err := o.play(ctx, world, o.jobs, jobs, func(j job, p played) error {
			f := &found[j.Number]
			f.Worlds[world] = f.in(p.Cell)
			if lease := o.longer(p.Cell); f.Worlds[world] == notReproduced && lease > 0 {
				j.TTL = lease
				again = append(again, j)
			}
			return nil
		})
		if err != nil {
			return err
		}
		if len(again) == 0 {
			continue
		}
		err = o.play(ctx, world, o.jobs, slices.Values(again), func(j job, p played) error {
			if f := &found[j.Number]; f.in(p.Cell) == confirmed {
				f.Worlds[world] = confirmed
				if f.Leases == nil {
					f.Leases = map[string]string{}
				}
				f.Leases[world] = j.TTL.String()
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// notReproduced is the entry of Worlds if the finding does not show in that world.
const notReproduced = "not reproduced"

// in returns the entry of Worlds for the script's result c.
func (f *finding) in(c reports.Cell) string {
	switch {
	case c.Verdict != reports.Held && c.Verdict != reports.Violated:
		return string(c.Verdict) + ": " + c.Reason
	case slices.Contains(c.Anomalies, f.Anomaly):
		return confirmed
	}
	return notReproduced
}

// maxRerun is the longest run time of a script that is rerun with a longer lease.
const maxRerun = 20 * time.Second

// longer returns the lease for rerunning a cell that did not show its finding. The lease is the
// largest multiple of the cell's lease, up to the default lease, for which the run stays within
// maxRerun. longer returns 0 if the user has set --ttl, or if the lease would not at least double.
func (o *exploreOptions) longer(c reports.Cell) time.Duration {
	if o.ttl != 0 || c.Lease <= 0 {
		return 0
	}
	times := min(int64(scenarios.Defaults().TTL/c.Lease), int64(maxRerun/max(c.Virtual, time.Millisecond)))
	if times < 2 {
		return 0
	}
	return c.Lease * time.Duration(times)
}

// print writes the findings and the summary of a search.
func (o *exploreOptions) print(w io.Writer, strategy string, r explore.Result, found []finding, took time.Duration) error {
	var b strings.Builder
	for _, f := range found {
		fmt.Fprintf(&b, "%s, after %s and %s", f.Anomaly, count(f.Moves, "move", "moves"), count(f.Requests, "request", "requests"))
		if f.ShrunkFrom > f.Moves {
			fmt.Fprintf(&b, ", shrunk from %s", count(f.ShrunkFrom, "move", "moves"))
		}
		for _, world := range o.worlds {
			if said := f.said(world); said != "" {
				fmt.Fprintf(&b, "; in %s: %s", world, said)
			}
		}
		fmt.Fprintf(&b, ":\n\n%s\n\n", indent(f.Script))
	}
	if len(r.Failures) > 0 {
		f := r.Failures[0]
		fmt.Fprintf(&b, "%s came to nothing: %s\n\n%s\n\n", failuresText(len(r.Failures)), f.Err, indent(f.Script))
	}
	switch {
	case len(found) > 0 || len(r.Failures) > 0:
	case o.drawn.random != "":
		fmt.Fprintf(&b, "%s: no violation in %s\n", strategy, count(r.Schedules, "schedule", "schedules"))
	default:
		fmt.Fprintf(&b, "%s: no violation in %s\n", strategy, count(r.States, "state", "states"))
	}
	exhausted := "yes"
	switch {
	case r.Exhausted:
	case r.Cut != "":
		exhausted = "no, " + r.Cut
	default:
		exhausted = "no, what follows on such a script is not known"
	}
	lasted := fmt.Sprintf(" %.1fs;", took.Seconds())
	if took == 0 { // merge passes 0: it did not search
		lasted = ""
	}
	if o.drawn.random != "" {
		b.WriteString(o.summary(strategy, r, took))
	} else {
		fmt.Fprintf(&b, "%s, %s: %s, %s; %s, %s; the longest path has %d;%s exhausted: %s\n",
			strategy, o.about(), count(r.States, "state", "states"), count(r.Ends, "of them an end", "of them ends"), count(r.Moves, "move", "moves"), count(r.Runs, "run", "runs"), r.Depth, lasted, exhausted)
	}
	for _, line := range searchNotes(r, shardNames{Shards: o.bound.Shards, AtMost: o.doubled}, o.varies) {
		fmt.Fprintln(&b, line)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// searchNotes returns further remarks on the result of a search, one per line.
func searchNotes(r explore.Result, names shardNames, varies string) []string {
	var list []string
	if text := names.remark(r); text != "" {
		list = append(list, text)
	}
	if r.Untabled != "" {
		list = append(list, "every move was played: what one script showed did not hold for another, "+r.Untabled)
	}
	if r.Varied > 0 {
		list = append(list, count(r.Varied, "script began otherwise than the one that it goes on from", "scripts began otherwise than those that they go on from"))
	}
	if varies != "" {
		list = append(list, "another search of the same seed may find other states, since "+varies)
	}
	if r.Unjudged != "" {
		list = append(list, "what went wrong on servers was not judged: "+r.Unjudged)
	}
	return list
}

// failuresText returns the subject of the sentence on n failed scripts; only the first is printed.
func failuresText(n int) string {
	if n == 1 {
		return "a script"
	}
	return fmt.Sprintf("%d scripts, of which this was the first,", n)
}

// about returns the bound of the search as text.
func (o *exploreOptions) about() string {
	text := count(o.bound.Clients, "client", "clients") + ", " + count(o.bound.Rounds, "round", "rounds")
	if o.nodes > 0 {
		text += ", " + count(o.nodes, "node", "nodes")
	}
	if o.bound.Extend {
		text += ", extend"
	}
	if o.bound.Reenter {
		text += ", reenter"
	}
	if o.bound.OneThread {
		text += ", one-thread"
	}
	if o.bound.Retries > 0 {
		text += ", " + count(o.bound.Retries, "retry", "retries")
	}
	for _, f := range explore.Faults() {
		if n := o.bound.Budget[f]; n > 0 {
			text += fmt.Sprintf(", %s %d", f, n)
		}
	}
	if o.bound.Shards > 0 {
		text += fmt.Sprintf(", shard %d/%d", o.bound.Shard, o.bound.Shards)
	}
	return text
}

func indent(text string) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	for i, line := range lines {
		if line != "" {
			lines[i] = "    " + line
		}
	}
	return strings.Join(lines, "\n")
}

// search is the content of findings.json.
type search struct {
	Strategy string        `json:"strategy"`
	Clients  int           `json:"clients"`
	Rounds   int           `json:"rounds"`
	Nodes    int           `json:"nodes"`
	Replicas int           `json:"replicas"`
	TTL      time.Duration `json:"ttl"`
	Seed     uint64        `json:"seed"`
	Extend   bool          `json:"extend,omitempty"`
	Reenter  bool          `json:"reenter,omitempty"`
	// OneThread reports whether the threads of all clients have the same id.
	OneThread bool                  `json:"one_thread,omitempty"`
	Retries   int                   `json:"retries,omitempty"`
	Budget    map[explore.Fault]int `json:"budget"`
	Random    string                `json:"random,omitempty"`
	PCTDepth  int                   `json:"pct_depth,omitempty"`
	shardNames
	explore.Result
	Findings []finding `json:"findings"`
}

// write writes the scripts, findings.json and last the page into --out. write removes the previous
// page first, so that an interrupted write does not leave the page of another search.
func (o *exploreOptions) write(ctx context.Context, registry strategies.Registry, strategy string, r explore.Result, found []finding, names shardNames) error {
	o.clear()
	for _, f := range found {
		if err := writeOut(o.out, f.File, []byte(f.Script)); err != nil {
			return err
		}
	}
	b := o.bound
	s := search{
		Strategy: strategy, Clients: b.Clients, Rounds: b.Rounds, Nodes: b.Nodes, Replicas: b.Replicas, TTL: b.TTL,
		Seed: o.seed, Extend: b.Extend, Reenter: b.Reenter, OneThread: b.OneThread, Retries: b.Retries, Budget: b.Budget, shardNames: names,
		Random: o.drawn.random, PCTDepth: o.drawn.pctDepth(), Result: r, Findings: found,
	}
	text, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		return err
	}
	if err := writeOut(o.out, findingsFile, append(text, '\n')); err != nil {
		return err
	}
	return s.writePage(ctx, registry, o.out)
}

// clear removes the page and the scripts of a previous search from --out, as far as findings.json
// lists them.
func (o *exploreOptions) clear() {
	if reports.CheckFindingsPage(o.out) == nil {
		removeOut(o.out, reports.HTMLFile) // a file that remains is overwritten
	}
	var former search
	text, err := readOut(o.out, findingsFile, input.Document)
	if err != nil || json.Unmarshal(text, &former) != nil {
		return
	}
	for _, f := range former.Findings {
		if f.File == filepath.Base(f.File) && f.File == scriptOf(former.Strategy, f.Anomaly) {
			removeOut(o.out, f.File) // a file that remains is overwritten
		}
	}
}
