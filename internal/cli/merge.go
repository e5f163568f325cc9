package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/lockfault/lockfault/internal/cli/kit"
	"github.com/lockfault/lockfault/internal/cli/search"
	"github.com/lockfault/lockfault/internal/explore"
	"github.com/lockfault/lockfault/internal/input"
	"github.com/lockfault/lockfault/internal/jsonscan"
)

type mergeOptions struct {
	out     string
	partial bool
}

func newMergeCommand(a *kit.App) *cobra.Command {
	o := mergeOptions{}
	cmd := &cobra.Command{
		Use:   "merge DIR...",
		Short: "Join the shards of a search",
		Long: `Join the shards of a search that "explore --shard" wrote with --out. Each DIR is the
directory of a shard. The output is that of the whole search.

Exit status:
  0  no bug was found
  1  a bug was found
  2  nothing was joined: the directories are not all shards of one search
  3  a script ended in an error, or a finding differs in another world`,
		Example: `  lockfault merge shard-1 shard-2 shard-3 --out found
  lockfault merge shard-* --partial`,
		Args: kit.SomeArgs("the directories of the shards"),
		RunE: func(cmd *cobra.Command, args []string) error { return o.merge(cmd, a, args) },
	}
	flags := cmd.Flags()
	flags.StringVar(&o.out, "out", "", "`directory` for scripts, findings.json and index.html (default none)")
	flags.BoolVar(&o.partial, "partial", false, "join the shards even if some are missing")
	return cmd
}

// shard is a shard of a search, with the directory that it was read from.
type shard struct {
	dir string
	search.Record
}

func (o *mergeOptions) merge(cmd *cobra.Command, a *kit.App, dirs []string) error {
	var shards []*shard
	for _, dir := range dirs {
		s, err := readShard(dir)
		if err != nil {
			return kit.Usage("%v", err)
		}
		shards = append(shards, s)
	}
	results, err := o.arrange(shards)
	if err != nil {
		return kit.Usage("%v", err)
	}
	result := explore.Join(results, explore.Bound{})
	var found []search.Finding
	for _, f := range result.Findings {
		found = append(found, whichever(shards, f))
	}
	e := shards[0].options()
	e.Out = o.out
	for _, f := range found {
		e.Worlds = append(e.Worlds, slices.Sorted(maps.Keys(f.Worlds))...)
	}
	slices.Sort(e.Worlds)
	e.Worlds = slices.Compact(e.Worlds)
	if err := o.checkOut(e, shards); err != nil {
		return err
	}
	if err := e.Print(cmd.OutOrStdout(), shards[0].Strategy, result, found, 0); err != nil {
		return err
	}
	if found == nil {
		found = []search.Finding{} // empty, not null, as a search writes it
	}
	if o.out == "" {
		return search.Status(result, found)
	}
	names := search.Origin{Command: e.Command(shards[0].Strategy, result), Version: shards[0].Version, AtMost: e.Doubled}
	if sameCommand(shards) {
		names.Command = shards[0].Command
	}
	if err := e.Write(cmd.Context(), a.Registry, shards[0].Strategy, result, found, names); err != nil {
		return err
	}
	return search.Status(result, found)
}

// readShard reads and validates the shard in a directory.
func readShard(dir string) (*shard, error) {
	info, err := os.Stat(dir)
	switch {
	case err != nil:
		return nil, fmt.Errorf("%w: name the directories that explore --shard wrote with --out", err)
	case !info.IsDir():
		return nil, fmt.Errorf("%s is not a directory: name those that explore --shard wrote with --out", dir)
	}
	path := filepath.Join(dir, search.FindingsFile)
	text, err := kit.ReadOut(dir, search.FindingsFile, input.Document)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("%s has no %s, which a search writes when it ends: wait for it, or search that shard again", dir, search.FindingsFile)
	case err != nil:
		return nil, err
	}
	s := &shard{dir: dir}
	if err := json.Unmarshal(text, &s.Record); err != nil {
		return nil, fmt.Errorf("%s is spoiled: %w: search that shard again", path, jsonscan.Reason(err))
	}
	if s.Shards == 0 {
		return nil, fmt.Errorf("%s is no shard: it was searched without --shard", dir)
	}
	if what := s.spoiled(); what != "" {
		return nil, fmt.Errorf("%s is spoiled: %s: search that shard again", path, what)
	}
	for _, f := range s.Record.Findings {
		s.Result.Findings = append(s.Result.Findings, f.Finding)
	}
	return s, nil
}

// spoiled returns why no search can have written the shard, or "".
func (s *shard) spoiled() string {
	common := s.Common
	switch {
	case s.Shards < 1 || s.Shards > explore.MaxShards || s.Shard < 1 || s.Shard > s.Shards:
		return fmt.Sprintf("it says that it is shard %d of %d", s.Shard, s.Shards)
	case common == nil:
		return "it doesn't say what is in every shard"
	case common.States < 0 || common.Ends < 0 || common.Merged < 0 || common.Moves < 0 ||
		common.States > s.States || common.Ends > s.Ends || common.Merged > s.Merged || common.Moves > s.Moves:
		return "more is in every shard than in this one"
	}
	for _, f := range s.Record.Findings {
		if len(f.Course) != f.Moves {
			return fmt.Sprintf("its %s has no script that a search may find", f.Anomaly)
		}
	}
	return s.Record.Spoiled()
}

// sameCommand reports whether all shards have the same command, and therefore the same limits. The
// common command is also the command of the whole search.
func sameCommand(shards []*shard) bool {
	for _, s := range shards {
		if len(s.Command) == 0 || !slices.Equal(s.Command, shards[0].Command) {
			return false
		}
	}
	return true
}

// arrange returns the shards in order, with a nil Result for missing ones. arrange returns an error
// if the shards belong to different searches, if one is given twice, or, without --partial, if one
// is missing.
func (o *mergeOptions) arrange(shards []*shard) ([]explore.Shard, error) {
	first := shards[0]
	results := make([]explore.Shard, first.Shards)
	dirs := make([]string, first.Shards)
	for _, s := range shards {
		if what := s.differs(first); what != "" {
			return nil, fmt.Errorf("%s and %s are of different searches: %s", first.dir, s.dir, what)
		}
		if n := s.Shard - 1; dirs[n] != "" {
			return nil, fmt.Errorf("%s and %s are both shard %d of %d: name each shard once", dirs[n], s.dir, s.Shard, s.Shards)
		}
		dirs[s.Shard-1], results[s.Shard-1].Result = s.dir, &s.Result
	}
	var missing []string
	for i := range results {
		results[i].Number, results[i].Of = i+1, first.Shards
		if results[i].Result == nil {
			missing = append(missing, strconv.Itoa(i+1))
		}
	}
	if len(missing) == 0 || o.partial {
		return results, nil
	}
	which := "shard " + missing[0] + " of %d is missing: name its directory, too"
	if len(missing) > 1 {
		which = "shards " + strings.Join(missing, ", ") + " of %d are missing: name their directories, too"
	}
	return nil, fmt.Errorf(which+", or join the others with --partial", first.Shards)
}

// differs returns in what s differs from a shard of the same search as first, or "".
func (s *shard) differs(first *shard) string {
	type pair struct {
		name       string
		this, that any
	}
	pairs := []pair{
		{"strategy", first.Strategy, s.Strategy}, {"clients", first.Clients, s.Clients}, {"rounds", first.Rounds, s.Rounds},
		{"nodes", first.Nodes, s.Nodes}, {"replicas", first.Replicas, s.Replicas}, {"ttl", first.TTL, s.TTL}, {"seed", first.Seed, s.Seed},
		{"extend", first.Extend, s.Extend}, {"reenter", first.Reenter, s.Reenter}, {"one-thread", first.OneThread, s.OneThread}, {"retries", first.Retries, s.Retries},
	}
	for _, f := range explore.BudgetKinds() {
		pairs = append(pairs, pair{string(f), first.Budget[f], s.Budget[f]})
	}
	pairs = append(pairs, pair{"number of shards", first.Shards, s.Shards}, pair{"version of lockfault", first.Version, s.Version})
	for _, p := range pairs {
		if p.this != p.that {
			return fmt.Sprintf("%s %v and %v", p.name, p.this, p.that)
		}
	}
	if first.Build != s.Build {
		return "another build of the program wrote each, whose locks may not do the same"
	}
	return ""
}

// whichever returns f as the shard that found it recorded it, with the results in other worlds.
func whichever(shards []*shard, f explore.Finding) search.Finding {
	for _, s := range shards {
		for _, had := range s.Record.Findings {
			if had.Anomaly == f.Anomaly && had.Script == f.Script {
				had.Finding = f
				return had
			}
		}
	}
	return search.Finding{} // unreachable: f comes from a shard
}

// options returns the options of the whole search.
func (s *shard) options() *search.Options {
	e := s.Record.Options()
	e.Doubled = s.Shards > 1 && e.Bound.Doubles()
	return e
}

// CheckOut checks --out as a search does, and also returns a usage error if it is the directory of
// a shard.
func (o *mergeOptions) checkOut(e *search.Options, shards []*shard) error {
	if err := e.CheckOut(); err != nil || o.out == "" {
		return err
	}
	out, err := os.Stat(o.out)
	if err != nil {
		return kit.Usage("--out: %v", err)
	}
	for _, s := range shards {
		if dir, err := os.Stat(s.dir); err == nil && os.SameFile(dir, out) {
			return kit.Usage("--out %s is one of the shards: name another directory", o.out)
		}
	}
	return e.CheckFiles(shards[0].Strategy)
}
