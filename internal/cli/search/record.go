// Package search contains what the commands about searches share: the [Explorer], which plays trials in
// worker processes for [explore.Search], and [Record], the result of a search as findings.json, scripts
// and a page. The commands decide what is searched; they read and write results only by this package.
package search

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/lockfault/lockfault/checker"
	"github.com/lockfault/lockfault/internal/cli/cells"
	"github.com/lockfault/lockfault/internal/cli/kit"
	"github.com/lockfault/lockfault/internal/cli/selection"
	"github.com/lockfault/lockfault/internal/explore"
	"github.com/lockfault/lockfault/internal/input"
	"github.com/lockfault/lockfault/internal/leases"
	"github.com/lockfault/lockfault/reports"
	"github.com/lockfault/lockfault/strategies"
)

// CheckOut creates the directory of --out, if it is set, and checks that it can be written to.
func (o *Options) CheckOut() error {
	if o.Out == "" {
		return nil
	}
	if err := kit.MakeOut(o.Out, FindingsFile, reports.HTMLFile); err != nil {
		return kit.Usage("--out: %v", err)
	}
	if err := reports.CheckFindingsPage(o.Out); err != nil {
		return kit.Usage("--out: %v", err)
	}
	return nil
}

// CheckFiles returns a usage error if a file in --out does not belong to a search and would be
// overwritten.
func (o *Options) CheckFiles(strategy string) error {
	if o.Out == "" {
		return nil
	}
	former, err := readSearch(o.Out)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		former = &Record{}
	case err != nil:
		return kit.Usage("--out: %s is of no search, and would be lost: name another directory, or remove it", filepath.Join(o.Out, FindingsFile))
	}
	return CheckScripts(o.Out, strategy, kit.Each(former.Findings, func(f Finding) string { return f.File }))
}

// ScriptName returns the file name of the script with which a strategy shows an anomaly.
func ScriptName(strategy string, a checker.Anomaly) string {
	return strategy + "-" + string(a) + selection.ScriptSuffix
}

// CheckScripts returns a usage error if a file that is not listed in ours would be overwritten by a
// script.
func CheckScripts(dir, strategy string, ours []string) error {
	for _, a := range checker.Anomalies() {
		file := filepath.Join(dir, ScriptName(strategy, a))
		if info, err := os.Lstat(file); err == nil && (!info.Mode().IsRegular() || !slices.Contains(ours, filepath.Base(file))) {
			return kit.Usage("--out: %s is none of what was written there, and may be lost: name another directory, or remove it", file)
		}
	}
	return nil
}

// Former reports whether --out holds a previous search.
func (o *Options) Former() bool {
	if o.Out == "" {
		return false
	}
	_, err := readSearch(o.Out)
	return err == nil
}

// Status returns the exit status of a search that was not interrupted, or nil for status 0.
func Status(result explore.Result, found []Finding) error {
	differs := slices.ContainsFunc(found, func(f Finding) bool {
		for _, said := range f.Worlds {
			if said != Confirmed {
				return true
			}
		}
		return false
	})
	switch {
	case len(result.Failures) > 0 || differs:
		return kit.Exit(kit.ExitUndecided, nil)
	case slices.ContainsFunc(found, func(f Finding) bool { return f.Outcome == leases.Bug }):
		return kit.Exit(kit.ExitDiffers, nil)
	}
	return nil
}

// Finding is a finding of a search, with its results in other worlds.
type Finding struct {
	explore.Finding
	File string `json:"file"`
	// Worlds says for each other world whether the script shows the same anomaly there.
	Worlds map[string]string `json:"worlds,omitempty"`
	// Leases holds the lease for each world where the script needs a longer one than usual. A lock
	// that acts by its own clock, for example to give up on a node, does so at other fractions of a
	// shorter lease.
	Leases map[string]string `json:"leases,omitempty"`
}

// Confirmed is the entry of Worlds if the finding shows the same anomaly in that world.
const Confirmed = "confirmed"

// Print writes the findings and the summary of a search.
func (o *Options) Print(w io.Writer, strategy string, r explore.Result, found []Finding, took time.Duration) error {
	var b strings.Builder
	for _, f := range found {
		fmt.Fprintf(&b, "%s\na schedule of %s and %s", leases.Finding{Anomaly: f.Anomaly, Outcome: f.Outcome, Reason: f.Reason}, kit.Count(f.Moves, "move", "moves"), kit.Count(f.Requests, "request", "requests"))
		if f.ShrunkFrom > f.Moves {
			fmt.Fprintf(&b, ", shrunk from %s", kit.Count(f.ShrunkFrom, "move", "moves"))
		}
		for _, world := range o.Worlds {
			if said := f.said(world); said != "" {
				fmt.Fprintf(&b, "; in %s: %s", world, said)
			}
		}
		fmt.Fprintf(&b, ":\n\n%s\n\n", kit.Indent(f.Script))
	}
	if len(r.Failures) > 0 {
		f := r.Failures[0]
		fmt.Fprintf(&b, "%s had no verdict: %s\n\n%s\n\n", failuresText(len(r.Failures)), f.Err, kit.Indent(f.Script))
	}
	switch {
	case len(found) > 0 || len(r.Failures) > 0:
	case o.Drawn.Method != "":
		fmt.Fprintf(&b, "%s: no violation in %s\n", strategy, kit.Count(r.Schedules, "schedule", "schedules"))
	default:
		fmt.Fprintf(&b, "%s: no violation in %s\n", strategy, kit.Count(r.States, "state", "states"))
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
	if o.Drawn.Method != "" {
		b.WriteString(o.summary(strategy, r, took))
	} else {
		fmt.Fprintf(&b, "%s, %s: %s, %s; %s, %s; the longest path has %d;%s exhausted: %s\n",
			strategy, o.about(), kit.Count(r.States, "state", "states"), kit.Count(r.Ends, "of them an end", "of them ends"), kit.Count(r.Moves, "move", "moves"), kit.Count(r.Runs, "run", "runs"), r.Depth, lasted, exhausted)
	}
	for _, line := range searchNotes(r, Origin{Shards: o.Bound.Shards, AtMost: o.Doubled}, o.Varies) {
		fmt.Fprintln(&b, line)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// searchNotes returns further remarks on the result of a search, one per line.
func searchNotes(r explore.Result, names Origin, varies string) []string {
	var list []string
	if text := names.remark(r); text != "" {
		list = append(list, text)
	}
	if r.Untabled != "" {
		list = append(list, "every move was played: what one script showed did not hold for another, "+r.Untabled)
	}
	if r.Varied > 0 {
		list = append(list, kit.Count(r.Varied, "script began otherwise than the one that it goes on from", "scripts began otherwise than those that they go on from"))
	}
	if varies != "" {
		list = append(list, "another search of the same seed may find other states, since "+varies)
	}
	if r.Leak != "" {
		list = append(list, "a goroutine outlives its client: "+r.Leak+"; "+reports.LeakRemedy)
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
func (o *Options) about() string {
	text := kit.Count(o.Bound.Clients, "client", "clients") + ", " + kit.Count(o.Bound.Rounds, "round", "rounds")
	if o.Nodes > 0 {
		text += ", " + kit.Count(o.Nodes, "node", "nodes")
	}
	for _, flag := range []struct {
		given bool
		name  string
	}{{o.Bound.Extend, "extend"}, {o.Bound.Reenter, "reenter"}, {o.Bound.OneThread, "one-thread"}} {
		if flag.given {
			text += ", " + flag.name
		}
	}
	if o.Bound.Retries > 0 {
		text += ", " + kit.Count(o.Bound.Retries, "retry", "retries")
	}
	for _, f := range explore.BudgetKinds() {
		if n := o.Bound.Budget[f]; n > 0 {
			text += fmt.Sprintf(", %s %d", f, n)
		}
	}
	if o.Bound.Shards > 0 {
		text += fmt.Sprintf(", shard %d/%d", o.Bound.Shard, o.Bound.Shards)
	}
	return text
}

// Record is the content of findings.json.
type Record struct {
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
	OneThread bool                       `json:"one_thread,omitempty"`
	Retries   int                        `json:"retries,omitempty"`
	Budget    map[explore.BudgetKind]int `json:"budget"`
	Random    string                     `json:"random,omitempty"`
	PCTDepth  int                        `json:"pct_depth,omitempty"`
	Origin
	explore.Result
	Findings []Finding `json:"findings"`
}

// Write writes the scripts, findings.json and last the page into --out. Write removes the previous
// page first, so that an interrupted write does not leave the page of another search.
func (o *Options) Write(ctx context.Context, registry strategies.Registry, strategy string, r explore.Result, found []Finding, names Origin) error {
	o.clear()
	for _, f := range found {
		if err := kit.WriteOut(o.Out, f.File, []byte(f.Script)); err != nil {
			return err
		}
	}
	b := o.Bound
	s := Record{
		Strategy: strategy, Clients: b.Clients, Rounds: b.Rounds, Nodes: b.Nodes, Replicas: b.Replicas, TTL: b.TTL,
		Seed: o.Seed, Extend: b.Extend, Reenter: b.Reenter, OneThread: b.OneThread, Retries: b.Retries, Budget: b.Budget, Origin: names,
		Random: o.Drawn.Method, PCTDepth: o.Drawn.pctDepth(), Result: r, Findings: found,
	}
	text, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		return err
	}
	if err := kit.WriteOut(o.Out, FindingsFile, append(text, '\n')); err != nil {
		return err
	}
	return s.writePage(ctx, registry, o.Out)
}

// clear removes the page and the scripts of a previous search from --out, as far as findings.json
// lists them.
func (o *Options) clear() {
	if reports.CheckFindingsPage(o.Out) == nil {
		kit.RemoveOut(o.Out, reports.HTMLFile) // a file that remains is overwritten
	}
	var former Record
	text, err := kit.ReadOut(o.Out, FindingsFile, input.Document)
	if err != nil || json.Unmarshal(text, &former) != nil {
		return
	}
	for _, f := range former.Findings {
		if f.File == filepath.Base(f.File) && f.File == ScriptName(former.Strategy, f.Anomaly) {
			kit.RemoveOut(o.Out, f.File) // a file that remains is overwritten
		}
	}
}

// Options holds what a search was asked for, as far as its results depend on that.
type Options struct {
	cells.Settings
	Drawn Random
	Bound explore.Bound
	Span  time.Duration
	Until []string
	Out   string
	// Doubled reports whether states and moves are sums over shards that may count some of them
	// twice.
	Doubled bool
	Varies  string // why another search may differ; see [strategies.Strategy.HistoryVaries]
}

// Random holds the flags for drawing random schedules instead of searching all.
type Random struct {
	Method    string // the method; empty for an exhaustive search
	Depth     int
	Schedules int
	Shrink    bool
}

// DefaultDepth is the default of --pct-depth: most failures of locks depend on two orderings.
const DefaultDepth = 3

// pctDepth returns the depth if the method is pct, otherwise 0.
func (o *Random) pctDepth() int {
	if o.Method == string(explore.PCT) {
		return o.Depth
	}
	return 0
}

// about returns the method, depth and seed as text.
func (o *Random) about(seed uint64) string {
	text := o.Method
	if o.pctDepth() > 0 {
		text += fmt.Sprintf(" of depth %d", o.Depth)
	}
	return fmt.Sprintf("%s, seed %d", text, seed)
}

// summary returns the summary line of a search of random schedules.
func (o *Options) summary(strategy string, r explore.Result, took time.Duration) string {
	return fmt.Sprintf("%s, %s; %s: %s, %s; %s, %s; the longest path has %d; %.1fs; ended: %s\n",
		strategy, o.about(), o.Drawn.about(o.Seed), kit.Count(r.Schedules, "schedule", "schedules"), kit.Count(r.States, "state", "states"),
		kit.Count(r.Moves, "move", "moves"), kit.Count(r.Runs, "run", "runs"), r.Depth, took.Seconds(), r.Cut)
}

// Origin is the part of findings.json that identifies the origin of a search. The origin is the
// command and version and, for a shard, its number and the build, which must be equal in all
// shards.
type Origin struct {
	// Command holds the words of the command of the whole search.
	Command []string `json:"command,omitempty"`
	Version string   `json:"version,omitempty"`
	Shard   int      `json:"shard,omitempty"`
	Shards  int      `json:"shards,omitempty"`
	Build   string   `json:"build,omitempty"`
	// AtMost reports that numbers of joined shards are upper bounds, because a state may be counted
	// more than once.
	AtMost bool `json:"at_most,omitempty"`
}

// remark returns a note on how many states every shard repeats, or on the accuracy of joined
// numbers. remark returns "" for a search without shards.
func (n Origin) remark(r explore.Result) string {
	switch {
	case n.AtMost:
		return "states and moves are at most so many: what two shards looked at is counted twice"
	case r.Common == nil || n.Shards < 2:
		return ""
	case r.Moves == r.Common.Moves:
		return "all of that is in every shard: nothing is left for this one"
	}
	return fmt.Sprintf("%s and %s of these are in every shard", kit.Count(r.Common.States, "state", "states"), kit.Count(r.Common.Moves, "move", "moves"))
}
