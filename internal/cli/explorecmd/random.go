package explorecmd

import (
	"cmp"
	"context"
	"slices"

	"github.com/spf13/cobra"

	"github.com/lockfault/lockfault/internal/cli/kit"
	"github.com/lockfault/lockfault/internal/cli/search"
	"github.com/lockfault/lockfault/internal/explore"
)

// checkRandom validates the flags of random schedules and sets the default of --shrink.
func (o *exploreOptions) checkRandom(cmd *cobra.Command) error {
	given := cmd.Flags().Changed
	methods := kit.Words(explore.Methods())
	if given("random") && !slices.Contains(methods, o.Drawn.Method) {
		return kit.Unknown("method", o.Drawn.Method, methods, "--random takes walk or pct")
	}
	shard := given("shard") || given("shard-index")
	if err := cmp.Or(
		kit.UsageIf(o.Drawn.Method == "" && given("schedules"), "--schedules is for schedules that are drawn: give --random walk or --random pct, too"),
		kit.UsageIf(o.Drawn.Method != string(explore.PCT) && given("pct-depth"), "--pct-depth is for priorities: give --random pct, too"),
		kit.UsageIf(o.Drawn.Schedules < 0, "--schedules doesn't take negative numbers"),
		kit.Between("pct-depth", o.Drawn.Depth, 1, explore.MostDepth),
		kit.UsageIf(shard && o.Drawn.Method != "", "--shard is for a search of all: draw schedules with another --seed on each machine, and without --shard"),
		kit.UsageIf(shard && o.Drawn.Shrink, "--shard and --shrink exclude each other: merge knows paths as they were found; shrink what it has joined"),
	); err != nil {
		return err
	}
	if !given("shrink") {
		o.Drawn.Shrink = o.Drawn.Method != ""
	}
	return nil
}

// search searches all schedules, or draws random ones, and then shrinks the findings if --shrink is
// set. The limit of --for does not apply to shrinking.
func (o *exploreOptions) search(cmd *cobra.Command, strategy string, e *search.Explorer, player explore.Player, tell func(r explore.Result, end context.CancelCauseFunc)) (explore.Result, error) {
	ctx, end := context.WithCancelCause(cmd.Context())
	defer end(nil)
	within := ctx
	if o.Drawn.Schedules == 0 && o.Remote == nil || cmd.Flags().Changed("for") {
		var cancel context.CancelFunc
		within, cancel = context.WithTimeout(ctx, o.Span)
		defer cancel()
	}
	said := func(r explore.Result) { tell(r, end) }
	var result explore.Result
	var err error
	switch {
	case o.Remote != nil:
		result, err = o.searchShared(within, e, strategy)
	case o.Drawn.Method == "":
		result, err = explore.Search(within, o.Bound, player, said)
	default:
		result, err = explore.Draw(within, o.Bound, explore.Random{
			Method: explore.Method(o.Drawn.Method), Depth: o.Drawn.Depth, Schedules: o.Drawn.Schedules, Seed: o.Seed,
		}, player, said)
	}
	if err == nil && o.Drawn.Shrink && cmd.Context().Err() == nil {
		err = explore.ShrinkFindings(cmd.Context(), player, &result)
	}
	return result, err
}
