package mapcmd

import (
	"testing"
	"time"

	"github.com/lockfault/lockfault/internal/cli/cells"
	"github.com/lockfault/lockfault/internal/sweep"
	"github.com/lockfault/lockfault/internal/worlds"
	"github.com/lockfault/lockfault/reports"
	"github.com/lockfault/lockfault/strategies"
)

// A point whose lease is a param has that lease in real time, too, and however late the
// machine was; any other has what the world takes, and a longer one if it is played again.
func TestLeaseOfAPoint(t *testing.T) {
	for _, c := range []struct {
		scenario string
		ttl      time.Duration // of the right lower corner's job
		fixed    bool
	}{{"pause-lease", time.Second, true}, {"lag-crash", 0, false}} {
		o := mapOptions{plan: sweep.Plan{Squares: 2, Halvings: 1}}
		o.Worlds = []string{worlds.Process}
		if err := o.open(t.Context(), c.scenario); err != nil {
			t.Fatal(err)
		}
		if err := o.choose(); err != nil {
			t.Fatal(err)
		}
		j := o.job(strategies.Strategy{Name: "x"}, 3, sweep.Point{X: 4})
		if j.TTL != c.ttl || j.Fixed != c.fixed || j.Number != 3 {
			t.Errorf("%s: %+v", c.scenario, j)
		}
		again := o.Rerun(j, cells.Played{Cell: reports.Cell{Lease: max(c.ttl, time.Second)}, Late: time.Second})
		if longer := again.TTL > max(c.ttl, time.Second); longer == c.fixed {
			t.Errorf("%s: played again with a lease of %v", c.scenario, again.TTL)
		}
	}
}
