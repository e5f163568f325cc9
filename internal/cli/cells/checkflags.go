package cells

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/lockfault/lockfault/internal/cli/kit"
	"github.com/lockfault/lockfault/internal/cli/selection"
	"github.com/lockfault/lockfault/internal/harness"
	"github.com/lockfault/lockfault/internal/leases"
	"github.com/lockfault/lockfault/internal/worlds"
	"github.com/lockfault/lockfault/strategies"
)

// checkPromoteBy returns a usage error if --promote-by sentinel is used in a world that does not
// support it.
func (o *Settings) checkPromoteBy() error {
	if o.PromoteBy != bySentinel {
		return nil
	}
	return cmp.Or(
		kit.UsageIf(slices.Contains(o.Worlds, worlds.Docker), "--promote-by %s is not to be had in the world %s, whose servers would tell clients addresses that they can't reach: use --world %s",
			bySentinel, worlds.Docker, worlds.Process),
		kit.UsageIf(slices.Contains(o.Worlds, worlds.External), "--promote-by %s needs servers of our own: use --world %s", bySentinel, worlds.Process),
		kit.UsageIf(!slices.Contains(o.Worlds, worlds.Process), "--promote-by %s is for the world %s: add it, as in --world %s,%s", bySentinel, worlds.Process, worlds.Sim, worlds.Process),
	)
}

// checkUnused returns a usage error if a flag of a world is given without that world.
func (o *Settings) checkUnused(cmd *cobra.Command) error {
	for _, of := range []struct{ flag, world string }{
		{"redis-server", worlds.Process}, {"image", worlds.Docker}, {"redis", worlds.External},
	} {
		if cmd.Flags().Changed(of.flag) && !slices.Contains(o.Worlds, of.world) {
			return kit.Usage("--%s is for the world %s: leave --%[1]s out, or play with --world %[2]s", of.flag, of.world)
		}
	}
	return nil
}

// checkSelection returns a usage error if a lease is too short for a script or if no cell applies
// in a world. No cell has been played then.
func (o *Settings) checkSelection(scripts []selection.Chosen, list []strategies.Strategy) error {
	for _, world := range o.Worlds {
		if err := o.checkLease(world, scripts); err != nil {
			return err
		}
		if err := o.checkApplies(world, scripts, list, leases.Observable()); err != nil {
			return err
		}
	}
	return nil
}

// checkLease returns a usage error if the lease of a world is shorter than a script allows.
// checkLease reports the script that needs the longest lease. A lease set by the script itself is
// not checked.
func (o *Settings) checkLease(world string, scripts []selection.Chosen) error {
	place := o.At(world)
	ttl := o.Lease()
	if ttl == 0 && place.Real() {
		ttl = place.Lease()
	}
	if ttl == 0 {
		return nil
	}
	var least time.Duration
	var why string
	for _, script := range scripts {
		if d, because := harness.MinTTL(script.Script); d > least {
			least, why = d, because
		}
	}
	switch {
	case ttl >= least:
		return nil
	case o.TTL != 0:
		return kit.Usage("--ttl %v is too short: the shortest lease is %v, because %s", ttl, least, why)
	}
	return kit.Usage("the lease of %v in the world %s is too short: give --ttl %v or more, because %s", ttl, world, least, why)
}

// CheckObserved returns a usage error if no cell applies in a world, given what was observed of the
// strategies.
func (o *Settings) CheckObserved(scripts []selection.Chosen, list []strategies.Strategy) error {
	for _, world := range o.Worlds {
		if err := o.checkApplies(world, scripts, list, nil); err != nil {
			return err
		}
	}
	return nil
}

// checkApplies returns a usage error if no cell can be played in a world. A strategy that is observed
// may have the given tags, too.
func (o *Settings) checkApplies(world string, scripts []selection.Chosen, list []strategies.Strategy, may []string) error {
	var place harness.Place
	if where := o.At(world); where.Real() {
		venue, err := worlds.NewVenue(where, worlds.Programs{Services: o.Services})
		if err != nil {
			return err
		}
		place = venue
	}
	first := ""
	for _, script := range scripts {
		for _, strategy := range list {
			if isObserved(strategy) {
				strategy.Tags = slices.Concat(strategy.Tags, may)
			}
			ok, why := harness.Cell{Strategy: strategy, Script: script.Script, Place: place}.Applies()
			if ok {
				return nil
			}
			if first == "" {
				first = strategy.Name + " under " + script.Name + ": " + why
			}
		}
	}
	if len(list)*len(scripts) == 1 {
		return kit.Usage("there is nothing to play in the world %s: %s", world, first)
	}
	return kit.Usage("there is nothing to play in the world %s: none of the %d cells applies, such as %s", world, len(list)*len(scripts), first)
}

// longLease is the lease from which polling locks are slow in virtual time: a simulated hour of
// polling takes seconds of real time.
const longLease = time.Hour

// polling returns advice for locks that poll, if the world is sim and the lease at least longLease;
// otherwise "".
func (o *Settings) polling(world string) string {
	if world != worlds.Sim || o.Lease() < longLease {
		return ""
	}
	return fmt.Sprintf("a lock that polls asks for as long as the lease, %v, and each question takes real time: give a shorter --ttl, or a longer --cell-timeout", o.Lease())
}

// Warn prints warnings about missing services and long leases on standard error, before cells are
// played.
func (o *Settings) Warn(cmd *cobra.Command) {
	for _, err := range o.missing {
		fmt.Fprintf(cmd.ErrOrStderr(), "lockfault: %v: its cells are not applicable\n", err)
	}
	for _, hint := range o.hints {
		fmt.Fprintf(cmd.ErrOrStderr(), "lockfault: %s\n", hint)
	}
	for _, world := range o.Worlds {
		if why := o.polling(world); why != "" && o.CellTimeout == 0 {
			fmt.Fprintf(cmd.ErrOrStderr(), "lockfault: a cell has %v of real time in the world %s; %s\n", LimitOf(Job{Place: o.At(world), TTL: o.Lease(), Limit: o.CellTimeout}), world, why)
		}
	}
}

// At returns the settings of --world and its related flags for one world.
func (o *Settings) At(world string) worlds.Place {
	place := o.Place
	place.World = world
	return place
}
