package search

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/lockfault/lockfault/checker"
	"github.com/lockfault/lockfault/internal/cli/cells"
	"github.com/lockfault/lockfault/internal/cli/kit"
	"github.com/lockfault/lockfault/internal/cli/selection"
	"github.com/lockfault/lockfault/internal/explore"
	"github.com/lockfault/lockfault/internal/input"
	"github.com/lockfault/lockfault/internal/jsonscan"
	"github.com/lockfault/lockfault/internal/shell"
	"github.com/lockfault/lockfault/internal/worlds"
	"github.com/lockfault/lockfault/reports"
	"github.com/lockfault/lockfault/scenarios"
	"github.com/lockfault/lockfault/strategies"
)

// FindingsFile is the name of the file that holds the result of a search.
const FindingsFile = "findings.json"

// readSearch reads and validates findings.json in dir.
func readSearch(dir string) (*Record, error) {
	path := filepath.Join(dir, FindingsFile)
	text, err := kit.ReadOut(dir, FindingsFile, input.Document)
	if err != nil {
		return nil, err
	}
	s := &Record{}
	if err := json.Unmarshal(text, s); err != nil {
		return nil, fmt.Errorf("%s is spoiled: %w: search again", path, jsonscan.Reason(err))
	}
	if what := s.Spoiled(); what != "" {
		return nil, fmt.Errorf("%s is spoiled: %s: search again", path, what)
	}
	return s, nil
}

// Spoiled returns why no search can have written s, or "".
func (s *Record) Spoiled() string {
	if s.Strategy == "" || s.Clients < 1 || s.Rounds < 1 || s.Nodes < 1 {
		return "it doesn't say what was searched"
	}
	if s.Findings == nil {
		return "it doesn't say what was found"
	}
	if s.Clients > 26 || s.Nodes > scenarios.MaxNodes || s.TTL < 0 || min(s.States, s.Ends, s.Moves, s.Runs, s.Depth) < 0 {
		return "it has numbers that no search has"
	}
	for fault, n := range s.Budget {
		if n < 0 || !slices.Contains(explore.BudgetKinds(), fault) {
			return fmt.Sprintf("its budget has %d of %q", n, fault)
		}
	}
	if s.Exhausted && (s.Cut != "" || len(s.Failures) > 0) {
		return "it says that it is exhausted, and why it is not"
	}
	for i, f := range s.Findings {
		switch {
		case slices.ContainsFunc(s.Findings[:i], func(other Finding) bool { return other.Anomaly == f.Anomaly }):
			return fmt.Sprintf("it has %s twice", f.Anomaly)
		case !slices.Contains(checker.Anomalies(), f.Anomaly):
			return fmt.Sprintf("%q is no anomaly", f.Anomaly)
		case f.File != ScriptName(s.Strategy, f.Anomaly) || f.File != filepath.Base(f.File):
			return fmt.Sprintf("%q is no file of it", f.File)
		}
		if why := CheckFinding(f.Finding, f.File, s.Strategy); why != "" {
			return why
		}
	}
	return ""
}

// CheckFinding returns why a finding from an untrusted source cannot come from a search of the
// strategy, or "".
func CheckFinding(f explore.Finding, file, strategy string) string {
	switch {
	case !slices.Contains(checker.Anomalies(), f.Anomaly):
		return fmt.Sprintf("%q is no anomaly", f.Anomaly)
	case !f.Outcome.Valid():
		return fmt.Sprintf("its %s has the outcome %q, which is none", f.Anomaly, f.Outcome)
	case f.Script == "" || f.Moves < 1 || !slices.Contains(f.Anomalies, f.Anomaly):
		return fmt.Sprintf("its %s has no script that a search may find", f.Anomaly)
	}
	script, err := scenarios.Parse(file, []byte(f.Script))
	if err != nil {
		return fmt.Sprintf("its %s has a script that is none: %v", f.Anomaly, err)
	}
	if !slices.Equal(script.Expected(strategy, nil), f.Anomalies) {
		return fmt.Sprintf("the script of its %s expects something else than it shows", f.Anomaly)
	}
	return ""
}

// Options returns the flags of the search, as far as its file records them.
func (s *Record) Options() *Options {
	e := &Options{Bound: explore.Bound{
		Clients: s.Clients, Rounds: s.Rounds, Nodes: s.Nodes, Replicas: s.Replicas, TTL: s.TTL,
		Extend: s.Extend, Reenter: s.Reenter, OneThread: s.OneThread, Retries: s.Retries, Budget: s.Budget,
	}}
	e.Seed = s.Seed
	if s.Nodes > 1 {
		e.Nodes = s.Nodes
	}
	return e
}

// Command returns the words of a command that repeats the search. Command omits flags that do not
// affect the result: the number of workers, the output and the servers. Command includes a limit
// only if the search was not exhausted, because an exhausted search gives the same result with
// other limits.
func (o *Options) Command(strategy string, r explore.Result) []string {
	b := o.Bound
	words := shell.Command{kit.Product, "explore", strategy}
	words.Flag(b.Clients != 2, "clients", b.Clients)
	words.Flag(b.Rounds != 1, "rounds", b.Rounds)
	words.Flag(o.Nodes != 0, "nodes", o.Nodes)
	words.Flag(b.Replicas != b.Budget[explore.Failover], "replicas", b.Replicas)
	words.Flag(b.Extend, "extend")
	words.Flag(b.Reenter, "reenter")
	words.Flag(b.OneThread, "one-thread")
	words.Flag(b.Retries != 0, "retries", b.Retries)
	for _, f := range explore.BudgetKinds() {
		words.Flag(b.Budget[f] != 0, string(f), b.Budget[f])
	}
	if !r.Exhausted {
		words.Flag(b.Moves != 0, "moves", b.Moves)
		words.Flag(b.States != 0, "states", b.States)
		words.Flag(b.UntilFirst, "until-first")
		words.Flag(len(o.Until) > 0, "until", strings.Join(o.Until, ","))
		words.Flag(r.Cut == OutOfTime && o.Span != 0, "for", o.Span)
	}
	words.Flag(b.WithoutTables, "without-tables")
	words.Flag(b.TTL != scenarios.Defaults().TTL, "ttl", b.TTL)
	words.Flag(o.Seed != cells.DefaultSeed, "seed", o.Seed)
	words.Flag(o.Drawn.Method != "", "random", o.Drawn.Method)
	words.Flag(o.Drawn.Schedules != 0, "schedules", o.Drawn.Schedules)
	words.Flag(o.Drawn.pctDepth() != 0 && o.Drawn.Depth != DefaultDepth, "pct-depth", o.Drawn.Depth)
	words.Flag(o.Drawn.Shrink && o.Drawn.Method == "", "shrink")
	words.Flag(!o.Drawn.Shrink && o.Drawn.Method != "", "shrink=false")
	words.Flag(len(o.Worlds) > 1, "world", strings.Join(o.Worlds, ","))
	return words
}

// writePage writes the page of the search next to its file. writePage plays the findings again to
// get their histories, so that merged shards and a lone findings.json give the same page.
func (s *Record) writePage(ctx context.Context, registry strategies.Registry, dir string) error {
	p, err := s.page(ctx, registry)
	if err != nil {
		return err
	}
	var b bytes.Buffer
	if err := reports.WriteFindings(&b, p); err != nil {
		return err
	}
	return kit.WriteOut(dir, reports.HTMLFile, b.Bytes())
}

// page returns the contents of the page.
func (s *Record) page(ctx context.Context, registry strategies.Registry) (reports.Findings, error) {
	strategy, known := registry.Lookup(s.Strategy)
	p := reports.Findings{Strategy: s.Strategy, Summary: strategy.Summary, Conclusions: s.conclusions(), Searched: s.searched(), Coverage: s.coverage(), Provenance: s.provenance(),
		Notes: searchNotes(s.Result, s.Origin, strategy.HistoryVaries)}
	for _, f := range s.Failures {
		p.Failures = append(p.Failures, reports.Failed{Script: f.Script, Err: f.Err})
	}
	asked := map[string]bool{}
	for _, f := range s.Findings {
		for world := range f.Worlds {
			asked[world] = true
		}
	}
	p.Worlds = slices.Sorted(maps.Keys(asked))
	flags := s.flags(strategy)
	for _, f := range s.Findings {
		x := reports.Found{Anomaly: f.Anomaly, Outcome: f.Outcome, Reason: f.Reason, Moves: f.Moves, Requests: f.Requests, ShrunkFrom: f.ShrunkFrom, File: f.File, Script: f.Script, Flags: flags}
		for _, world := range p.Worlds {
			x.Said = append(x.Said, f.said(world))
		}
		x.Cell = reports.Cell{World: worlds.Sim, Strategy: s.Strategy, Scenario: strings.TrimSuffix(f.File, selection.ScriptSuffix), Verdict: reports.Error, Reason: "it was not played again"}
		if !known {
			x.Cell.Reason = fmt.Sprintf("this program has no strategy %q, so it was not played again: take the program that searched", s.Strategy)
		}
		p.List = append(p.List, x)
	}
	var err error
	if known {
		err = s.play(ctx, strategy, p.List)
	}
	for i, f := range s.Findings {
		c := &p.List[i].Cell
		c.Expected, c.Varies = f.Anomalies, strategy.HistoryVaries
		c.Settle()
	}
	return p, err
}

// flags returns the flags with which a single script is played as in the search.
func (s *Record) flags(strategy strategies.Strategy) []string {
	o := cells.Settings{Seed: s.Seed, PromoteBy: cells.ByReplicaOf}
	if s.Nodes != max(1, strategy.Nodes) {
		o.Nodes = s.Nodes
	}
	return o.FlagWords()
}

// play plays the findings in virtual time and stores the results in list.
func (s *Record) play(ctx context.Context, strategy strategies.Strategy, list []reports.Found) error {
	if len(list) == 0 {
		return nil
	}
	on, err := strategy.On(s.Nodes)
	if err != nil {
		for i := range list { // the search came from another program
			list[i].Cell.Reason = err.Error()
		}
		return nil
	}
	temp, err := cells.MakeTraces()
	if err != nil {
		return err
	}
	defer temp.Remove()
	var scripts []selection.Chosen
	for i := range list {
		x := &list[i]
		script, err := selection.Generated(x.File, x.Script)
		if err != nil {
			return err
		}
		scripts = append(scripts, script)
	}
	o := cells.Settings{Worlds: []string{worlds.Sim}, PromoteBy: cells.ByReplicaOf, Seed: s.Seed, Nodes: s.Nodes}
	return o.Play(ctx, worlds.Sim, min(len(list), mostPlayed), o.Jobs(worlds.Sim, 0, scripts, []strategies.Strategy{on}, temp.Path()), func(j cells.Job, p cells.Played) error {
		x, c := &list[j.Number], p.Cell
		x.Cell = c
		if c.History == "" {
			return nil
		}
		var err error
		x.History, err = reports.ReadHistory(temp.Path(), c.History)
		return err
	})
}

// mostPlayed is the number of findings played at a time. A search has few, and each takes about a
// millisecond.
const mostPlayed = 2

// said returns the result of a finding in a world, or "" if it was not played there.
func (f *Finding) said(world string) string {
	said := f.Worlds[world]
	if lease := f.Leases[world]; said != "" && lease != "" {
		said += " with a lease of " + lease
	}
	return said
}

// conclusions returns sentences on what the search proves, and what it does not.
func (s *Record) conclusions() []string {
	looked := kit.Count(s.States, "state", "states")
	within := s.Options().about()
	none := len(s.Findings) == 0
	var list []string
	switch {
	case s.Random != "":
		list = append(list, fmt.Sprintf("Drawn by chance: %s within this bound (%s). It ended because %s.", kit.Count(s.Schedules, "schedule", "schedules"), within, cutReason(s.Cut)))
		if none {
			list = append(list, "No anomaly showed. That says that none was drawn, and not that there is none.")
		} else {
			list = append(list, "That no other anomaly showed says that none was drawn, and not that there is none.")
		}
	case s.Exhausted && none && s.Shards < 2:
		list = append(list,
			fmt.Sprintf("Exhausted, and nothing was found: there is no anomaly within this bound (%s).", within),
			fmt.Sprintf("All of its %s were looked at: in whatever order requests arrive, whenever a fault happens that the bound allows, none shows one. It says nothing of more clients, rounds or faults, of other kinds of faults, nor of what docs/explore.md says is left out.", looked))
	case s.Exhausted && s.Shards < 2:
		list = append(list,
			fmt.Sprintf("Exhausted: there is no other anomaly within this bound (%s).", within),
			fmt.Sprintf("All of its %s were looked at. It says nothing of more clients, rounds or faults, of other kinds of faults, nor of what docs/explore.md says is left out.", looked))
	case s.Exhausted:
		list = append(list, fmt.Sprintf("This part of the search is exhausted: there is %s anomaly in it (%s).", map[bool]string{true: "no", false: "no other"}[none], within))
	default:
		why := "scripts had no verdict, and what follows on them is not known"
		if s.Cut != "" {
			why = cutReason(s.Cut)
		}
		list = append(list,
			fmt.Sprintf("Not exhausted: it ended after %s, because %s.", looked, why),
			fmt.Sprintf("What was not seen within this bound (%s) can't be said: there may be %s.", within, map[bool]string{true: "anomalies, though none was found", false: "other anomalies than those that were found"}[none]))
	}
	if s.Shards > 1 {
		list = append(list, fmt.Sprintf("It is shard %d of %d. What the whole search comes to, \"%s merge\" says, of the directories of all of them.", s.Shard, s.Shards, kit.Product))
	}
	return list
}

// OutOfTime is the Cut of a search that --for ended.
const OutOfTime = "out of time"

// cutReason returns a clause that explains the Cut of a search.
func cutReason(cut string) string {
	switch cut {
	case OutOfTime:
		return "the time of --for was over"
	case "interrupted":
		return "somebody interrupted it"
	}
	if what, ok := strings.CutPrefix(cut, "until "); ok {
		return "it was to end with " + what
	}
	if strings.HasPrefix(cut, "more than ") {
		return "there were " + cut
	}
	return cut
}

// searched returns rows of label and value that describe what was searched.
func (s *Record) searched() [][2]string {
	list := [][2]string{{"strategy", s.Strategy}, {"clients", fmt.Sprint(s.Clients)}, {"rounds", fmt.Sprintf("%d for each client", s.Rounds)}, {"nodes", fmt.Sprint(s.Nodes)}}
	if s.Replicas > 0 {
		list = append(list, [2]string{"replicas", fmt.Sprintf("%d of each node", s.Replicas)})
	}
	list = append(list, [2]string{"lease", s.TTL.String()})
	for _, o := range []struct {
		given      bool
		name, says string
	}{
		{s.Extend, "extend", "a holder may extend its lease once in a round"},
		{s.Reenter, "reenter", "a holder may try once in a round to get the lock that it has"},
		{s.OneThread, "one-thread", "the threads of all clients have one id"},
		{s.Retries > 0, "retries", fmt.Sprintf("clients' libraries repeat a command that got no answer, %s", times(s.Retries))},
	} {
		if o.given {
			list = append(list, [2]string{o.name, o.says})
		}
	}
	faults := 0
	for _, f := range explore.BudgetKinds() {
		if n := s.Budget[f]; n > 0 {
			list = append(list, [2]string{fmt.Sprintf("%s %d", f, n), fmt.Sprintf("%s, %s: %s", "a fault", times(n), f.About())})
			faults++
		}
	}
	if faults == 0 {
		list = append(list, [2]string{"faults", "none: requests are slow, and nothing else happens to them"})
	}
	how := "all orders in which requests can reach their servers"
	if s.Random != "" {
		how = "schedules drawn by the method " + (&Random{Method: s.Random, Depth: s.PCTDepth}).about(s.Seed)
	}
	return append(list, [2]string{"looked at", how})
}

// times returns text for "at most n times".
func times(n int) string {
	switch n {
	case 1:
		return "once at most"
	case 2:
		return "twice at most"
	}
	return fmt.Sprintf("%d times at most", n)
}

// coverage returns rows of label and value that describe how much was searched.
func (s *Record) coverage() [][2]string {
	var list [][2]string
	if s.Schedules > 0 {
		list = append(list, [2]string{"schedules", fmt.Sprintf("%d, drawn to their ends", s.Schedules)})
	}
	exhausted := "yes"
	if !s.Exhausted {
		exhausted = "no"
		if s.Cut != "" {
			exhausted += ", " + s.Cut
		}
	}
	return append(list,
		[2]string{"states", fmt.Sprintf("%d different ones", s.States)},
		[2]string{"ends", fmt.Sprintf("%d of them, where everybody is done", s.Ends)},
		[2]string{"moves", fmt.Sprintf("%d, of which %d led to a state that was known", s.Moves, s.Merged)},
		[2]string{"runs", fmt.Sprintf("%d scripts were played for them", s.Runs)},
		[2]string{"longest path", kit.Count(s.Depth, "move", "moves")},
		[2]string{"exhausted", exhausted},
	)
}

// provenance returns rows of label and value that identify the search: seed, version and command.
func (s *Record) provenance() [][2]string {
	list := [][2]string{{"seed", fmt.Sprint(s.Seed)}}
	if s.Version != "" {
		list = append([][2]string{{"version", kit.Product + " " + s.Version}}, list...)
	}
	if len(s.Command) > 0 {
		words := slices.Clone(s.Command)
		if s.Shards > 0 {
			words = append(words, "--shard", fmt.Sprintf("%d/%d", s.Shard, s.Shards))
		}
		list = append(list, [2]string{"command", shell.Line(words)})
	}
	return append(list, [2]string{"to check", fmt.Sprintf("%s report DIR makes this file again from %s; to search again may take another --for", kit.Product, FindingsFile)})
}

// ReportFindings writes the page of the search in dir again.
func ReportFindings(ctx context.Context, registry strategies.Registry, dir string) error {
	s, err := readSearch(dir)
	if err != nil {
		return err
	}
	if err := reports.CheckFindingsPage(dir); err != nil {
		return err
	}
	return s.writePage(ctx, registry, dir)
}
