package cli

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/pflag"

	"github.com/lockfault/lockfault/explore"
	"github.com/lockfault/lockfault/internal/version"
)

func (o *exploreOptions) addShardFlag(flags *pflag.FlagSet) {
	flags.StringVar(&o.shard, "shard", "", "`I/N` for the I-th of N parts of the search, such as 1/4; default all of it")
}

// mostShards is how many shards a search may have. Each has what is common to all of them.
const mostShards = 10_000

// checkShard reads --shard.
func (o *exploreOptions) checkShard() error {
	if o.shard == "" {
		return nil
	}
	first, second, _ := strings.Cut(o.shard, "/")
	shard, err1 := strconv.Atoi(first)
	of, err2 := strconv.Atoi(second)
	switch {
	case err1 != nil || err2 != nil || o.shard != fmt.Sprintf("%d/%d", shard, of):
		return usage("--shard %q: give two numbers, such as 1/4 for the first of four", o.shard)
	case of < 1 || of > mostShards || shard < 1 || shard > of:
		return usage("--shard %s: there are 1 to %d shards, and the first number is 1 to the second", o.shard, mostShards)
	}
	o.bound.Shard, o.bound.Shards = shard, of
	return nil
}

// shardNames is what a file says of where a search is from, and of a shard, which one it is, and
// of which build, for all have to be of one.
type shardNames struct {
	// Command is what to type for the whole search, in words.
	Command []string `json:"command,omitempty"`
	Version string   `json:"version,omitempty"`
	Shard   int      `json:"shard,omitempty"`
	Shards  int      `json:"shards,omitempty"`
	Build   string   `json:"build,omitempty"`
	// AtMost is said of shards that were joined, if a state may be counted more than once.
	AtMost bool `json:"at_most,omitempty"`
}

// shardNames returns those of this search.
func (o *exploreOptions) shardNames() (shardNames, error) {
	if o.bound.Shards == 0 {
		return shardNames{AtMost: o.doubled, Version: version.Of()}, nil
	}
	build, err := digestOfThisProgram()
	return shardNames{Shard: o.bound.Shard, Shards: o.bound.Shards, Version: version.Of(), Build: build}, err
}

// remark says how much of a shard is its own, or how exact the numbers of those are that were joined; nothing of a
// search that has no shards.
func (n shardNames) remark(r explore.Result) string {
	switch {
	case n.AtMost:
		return "states and moves are at most so many: what two shards looked at is counted twice"
	case r.Common == nil || n.Shards < 2:
		return ""
	case r.Moves == r.Common.Moves:
		return "all of that is in every shard: nothing is left for this one"
	}
	return fmt.Sprintf("%s and %s of these are in every shard", count(r.Common.States, "state", "states"), count(r.Common.Moves, "move", "moves"))
}
