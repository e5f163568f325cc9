package cli

import (
	"fmt"
	"io"
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

// shardNames is what a file of a shard says beside what every search does: which one it is, and
// of which program, for all have to be of one.
type shardNames struct {
	Shard   int    `json:"shard,omitempty"`
	Shards  int    `json:"shards,omitempty"`
	Version string `json:"version,omitempty"`
	Build   string `json:"build,omitempty"`
	// AtMost is said of shards that were joined, if a state may be counted more than once.
	AtMost bool `json:"at_most,omitempty"`
}

// shardNames returns those of this search.
func (o *exploreOptions) shardNames() (shardNames, error) {
	if o.bound.Shards == 0 {
		return shardNames{AtMost: o.doubled}, nil
	}
	build, err := digestOfThisProgram()
	return shardNames{Shard: o.bound.Shard, Shards: o.bound.Shards, Version: version.Of(), Build: build}, err
}

// tellShard says how much of a shard is its own, or how exact the numbers of those are that
// were joined.
func (o *exploreOptions) tellShard(w io.Writer, r explore.Result) {
	switch {
	case o.doubled:
		fmt.Fprintln(w, "states and moves are at most so many: what two shards looked at is counted twice")
	case r.Common == nil || o.bound.Shards < 2:
	case r.Moves == r.Common.Moves:
		fmt.Fprintln(w, "all of that is in every shard: nothing is left for this one")
	default:
		fmt.Fprintf(w, "%s and %s of these are in every shard\n", count(r.Common.States, "state", "states"), count(r.Common.Moves, "move", "moves"))
	}
}
