package cli

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/lockfault/lockfault/internal/explore"
)

// randomOptions holds the flags for drawing random schedules instead of searching all.
type randomOptions struct {
	random    string // the method; empty for an exhaustive search
	depth     int
	schedules int
	shrink    bool
}

// defaultDepth is the default of --pct-depth: most failures of locks depend on two orderings.
const defaultDepth = 3

func (o *randomOptions) addFlags(flags *pflag.FlagSet) {
	flags.StringVar(&o.random, "random", "", "`method` to draw schedules at random, in place of a search of all: walk or pct; --seed decides which")
	flags.IntVar(&o.schedules, "schedules", 0, "`number` of schedules to draw with --random; default as many as --for allows")
	flags.IntVar(&o.depth, "pct-depth", defaultDepth, "`number` of places, and one, at which priorities change with --random pct")
	flags.BoolVar(&o.shrink, "shrink", false, "shrink the script of each finding; default with --random only")
}

// check validates the flags and sets the default of --shrink.
func (o *randomOptions) check(cmd *cobra.Command) error {
	given := cmd.Flags().Changed
	var methods []string
	for _, m := range explore.Methods() {
		methods = append(methods, string(m))
	}
	switch {
	case given("random") && !slices.Contains(methods, o.random):
		return unknown("method", o.random, methods, "--random takes walk or pct")
	case o.random == "" && given("schedules"):
		return usage("--schedules is for schedules that are drawn: give --random walk or --random pct, too")
	case o.random != string(explore.PCT) && given("pct-depth"):
		return usage("--pct-depth is for priorities: give --random pct, too")
	case o.schedules < 0:
		return usage("--schedules doesn't take negative numbers")
	}
	if err := between("pct-depth", o.depth, 1, explore.MostDepth); err != nil {
		return err
	}
	switch {
	case !given("shard") && !given("shard-index"):
	case o.random != "":
		return usage("--shard is for a search of all: draw schedules with another --seed on each machine, and without --shard")
	case o.shrink:
		return usage("--shard and --shrink exclude each other: merge knows paths as they were found; shrink what it has joined")
	}
	if !given("shrink") {
		o.shrink = o.random != ""
	}
	return nil
}

// search searches all schedules, or draws random ones, and then shrinks the findings if --shrink is
// set. The limit of --for does not apply to shrinking.
func (o *exploreOptions) search(cmd *cobra.Command, strategy string, e *explorer, player explore.Player, tell func(r explore.Result, end context.CancelCauseFunc)) (explore.Result, error) {
	ctx, end := context.WithCancelCause(cmd.Context())
	defer end(nil)
	within := ctx
	if o.drawn.schedules == 0 && o.shared == nil || cmd.Flags().Changed("for") {
		var cancel context.CancelFunc
		within, cancel = context.WithTimeout(ctx, o.span)
		defer cancel()
	}
	said := func(r explore.Result) { tell(r, end) }
	var result explore.Result
	var err error
	switch {
	case o.shared != nil:
		result, err = o.searchShared(within, e, strategy)
	case o.drawn.random == "":
		result, err = explore.Search(within, o.bound, player, said)
	default:
		result, err = explore.Draw(within, o.bound, explore.Random{
			Method: explore.Method(o.drawn.random), Depth: o.drawn.depth, Schedules: o.drawn.schedules, Seed: o.seed,
		}, player, said)
	}
	if err == nil && o.drawn.shrink && cmd.Context().Err() == nil {
		err = explore.ShrinkFindings(cmd.Context(), player, &result)
	}
	return result, err
}

// pctDepth returns the depth if the method is pct, otherwise 0.
func (o *randomOptions) pctDepth() int {
	if o.random == string(explore.PCT) {
		return o.depth
	}
	return 0
}

// about returns the method, depth and seed as text.
func (o *randomOptions) about(seed uint64) string {
	text := o.random
	if o.pctDepth() > 0 {
		text += fmt.Sprintf(" of depth %d", o.depth)
	}
	return fmt.Sprintf("%s, seed %d", text, seed)
}

// summary returns the summary line of a search of random schedules.
func (o *exploreOptions) summary(strategy string, r explore.Result, took time.Duration) string {
	return fmt.Sprintf("%s, %s; %s: %s, %s; %s, %s; the longest path has %d; %.1fs; ended: %s\n",
		strategy, o.about(), o.drawn.about(o.seed), count(r.Schedules, "schedule", "schedules"), count(r.States, "state", "states"),
		count(r.Moves, "move", "moves"), count(r.Runs, "run", "runs"), r.Depth, took.Seconds(), r.Cut)
}
