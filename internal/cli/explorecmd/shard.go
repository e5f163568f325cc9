package explorecmd

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/lockfault/lockfault/internal/cli/kit"
	"github.com/lockfault/lockfault/internal/cli/search"
	"github.com/lockfault/lockfault/internal/explore"
	"github.com/lockfault/lockfault/internal/version"
)

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
		if err := cmp.Or(
			kit.UsageIf(f.text == "", "--%s is empty: give two numbers, such as %d/4 for the first of four, or leave it out", f.name, f.first),
			kit.UsageIf(o.Bound.Shards > 0, "--shard and --shard-index say the same: leave one of them out"),
			kit.UsageIf(err1 != nil || err2 != nil || f.text != fmt.Sprintf("%d/%d", shard, of), "--%s %q: give two numbers, such as %d/4 for the first of four", f.name, f.text, f.first),
			kit.UsageIf(of < 1 || of > explore.MaxShards || shard < f.first || shard > of-1+f.first, "--%s %s: there are 1 to %d shards, and the first number is %s", f.name, f.text, explore.MaxShards, f.span),
		); err != nil {
			return err
		}
		o.Bound.Shard, o.Bound.Shards = shard+1-f.first, of
	}
	return nil
}

// originOf returns the identification of this search, without its command.
func (o *exploreOptions) originOf() (search.Origin, error) {
	if o.Bound.Shards == 0 {
		return search.Origin{AtMost: o.Doubled, Version: version.Of()}, nil
	}
	build, err := kit.BuildDigest()
	return search.Origin{Shard: o.Bound.Shard, Shards: o.Bound.Shards, Version: version.Of(), Build: build}, err
}
