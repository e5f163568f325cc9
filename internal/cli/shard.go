package cli

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/lockfault/lockfault/internal/explore"
	"github.com/lockfault/lockfault/internal/version"
)

func (o *exploreOptions) addShardFlag(flags *pflag.FlagSet) {
	flags.StringVar(&o.shard, "shard", "", "`I/N` for the I-th of N parts of the search, such as 1/4; default all of it")
	flags.StringVar(&o.shardIndex, "shard-index", "", "`I/N` as --shard has it, but counted from 0, as an Indexed Job of Kubernetes counts")
}

// checkShard parses --shard and --shard-index into o.bound.
func (o *exploreOptions) checkShard(cmd *cobra.Command) error {
	for _, f := range []struct {
		name, text, span string
		first            int
	}{{"shard", o.shard, "1 to the second", 1}, {"shard-index", o.shardIndex, "0 to one less than the second", 0}} {
		if !cmd.Flags().Changed(f.name) {
			continue
		}
		first, second, _ := strings.Cut(f.text, "/")
		shard, err1 := strconv.Atoi(first)
		of, err2 := strconv.Atoi(second)
		switch {
		case f.text == "":
			return usage("--%s is empty: give two numbers, such as %d/4 for the first of four, or leave it out", f.name, f.first)
		case o.bound.Shards > 0:
			return usage("--shard and --shard-index say the same: leave one of them out")
		case err1 != nil || err2 != nil || f.text != fmt.Sprintf("%d/%d", shard, of):
			return usage("--%s %q: give two numbers, such as %d/4 for the first of four", f.name, f.text, f.first)
		case of < 1 || of > explore.MaxShards || shard < f.first || shard > of-1+f.first:
			return usage("--%s %s: there are 1 to %d shards, and the first number is %s", f.name, f.text, explore.MaxShards, f.span)
		}
		o.bound.Shard, o.bound.Shards = shard+1-f.first, of
	}
	return nil
}

// shardNames is the part of findings.json that identifies the origin of a search. The origin is the
// command and version and, for a shard, its number and the build, which must be equal in all
// shards.
type shardNames struct {
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

// shardNames returns the identification of this search, without its command.
func (o *exploreOptions) shardNames() (shardNames, error) {
	if o.bound.Shards == 0 {
		return shardNames{AtMost: o.doubled, Version: version.Of()}, nil
	}
	build, err := digestOfThisProgram()
	return shardNames{Shard: o.bound.Shard, Shards: o.bound.Shards, Version: version.Of(), Build: build}, err
}

// remark returns a note on how many states every shard repeats, or on the accuracy of joined
// numbers. remark returns "" for a search without shards.
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
