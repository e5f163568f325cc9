package cli

import (
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/lockfault/lockfault/internal/harness"
	"github.com/lockfault/lockfault/internal/worlds"
	"github.com/lockfault/lockfault/strategies"
)

// checkFailover returns a usage error if --failover sentinel is used in a world that does not
// support it.
func (o *playOptions) checkFailover() error {
	switch {
	case o.failover != bySentinel:
		return nil
	case slices.Contains(o.worlds, worlds.Docker):
		return usage("--failover %s is not to be had in the world %s, whose servers would tell clients addresses that they can't reach: use --world %s",
			bySentinel, worlds.Docker, worlds.Process)
	case slices.Contains(o.worlds, worlds.External):
		return usage("--failover %s needs servers of our own: use --world %s", bySentinel, worlds.Process)
	case !slices.Contains(o.worlds, worlds.Process):
		return usage("--failover %s is for the world %s: add it, as in --world %s,%s", bySentinel, worlds.Process, worlds.Sim, worlds.Process)
	}
	return nil
}

// checkSelection returns a usage error if a lease is too short for a script or if no cell applies
// in a world. No cell has been played then.
func (o *playOptions) checkSelection(scripts []chosen, list []strategies.Strategy) error {
	for _, world := range o.worlds {
		if err := o.checkLease(world, scripts); err != nil {
			return err
		}
		if err := o.checkApplies(world, scripts, list); err != nil {
			return err
		}
	}
	return nil
}

// checkLease returns a usage error if the lease of a world is shorter than a script allows.
// checkLease reports the script that needs the longest lease. A lease set by the script itself is
// not checked.
func (o *playOptions) checkLease(world string, scripts []chosen) error {
	place := o.at(world)
	ttl := o.lease()
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
	case o.ttl != 0:
		return usage("--ttl %v is too short: the shortest lease is %v, because %s", ttl, least, why)
	}
	return usage("the lease of %v in the world %s is too short: give --ttl %v or more, because %s", ttl, world, least, why)
}

// checkApplies returns a usage error if no cell can be played in a world.
func (o *playOptions) checkApplies(world string, scripts []chosen, list []strategies.Strategy) error {
	var place harness.Place
	if where := o.at(world); where.Real() {
		venue, err := worlds.NewVenue(where, worlds.Programs{Services: o.services})
		if err != nil {
			return err
		}
		place = venue
	}
	first := ""
	for _, script := range scripts {
		for _, strategy := range list {
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
		return usage("there is nothing to play in the world %s: %s", world, first)
	}
	return usage("there is nothing to play in the world %s: none of the %d cells applies, such as %s", world, len(list)*len(scripts), first)
}

// longLease is the lease from which polling locks are slow in virtual time: a simulated hour of
// polling takes seconds of real time.
const longLease = time.Hour

// polling returns advice for locks that poll, if the world is sim and the lease at least longLease;
// otherwise "".
func (o *playOptions) polling(world string) string {
	if world != worlds.Sim || o.lease() < longLease {
		return ""
	}
	return fmt.Sprintf("a lock that polls asks for as long as the lease, %v, and each question takes real time: give a shorter --ttl, or a longer --cell-timeout", o.lease())
}

// warn prints warnings about missing services and long leases on standard error, before cells are
// played.
func (o *playOptions) warn(cmd *cobra.Command) {
	for _, err := range o.missing {
		fmt.Fprintf(cmd.ErrOrStderr(), "lockfault: %v: its cells are not applicable\n", err)
	}
	for _, world := range o.worlds {
		if why := o.polling(world); why != "" && o.cellTimeout == 0 {
			fmt.Fprintf(cmd.ErrOrStderr(), "lockfault: a cell has %v of real time in the world %s; %s\n", limitOf(job{Place: o.at(world), TTL: o.lease(), Limit: o.cellTimeout}), world, why)
		}
	}
}

// at returns the settings of --world and its related flags for one world.
func (o *playOptions) at(world string) worlds.Place {
	place := o.place
	place.World = world
	return place
}
