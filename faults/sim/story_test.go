package sim_test

import (
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lockfault/lockfault/checker"
	"github.com/lockfault/lockfault/faults"
	"github.com/lockfault/lockfault/faults/sim"
	"github.com/lockfault/lockfault/faults/worldtest"
)

// TestStories runs the stories that must have the same result in every world.
func TestStories(t *testing.T) {
	for _, story := range worldtest.Stories() {
		t.Run(story.Name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var events []checker.Event
				w, err := sim.New(sim.Config{
					Nodes: max(1, story.Nodes), Replicas: story.Replicas, Lock: faults.SingleKeyLock(worldtest.Key), TTL: worldtest.TTL, Seed: 1,
					Record: func(e checker.Event) { events = append(events, e) },
				})
				if err != nil {
					t.Fatal(err)
				}
				worldtest.Play(t, worldtest.World{
					World: w,
					Dial: func(client, node string) func() (net.Conn, error) {
						return func() (net.Conn, error) { return w.Dial(bg, client, node) }
					},
					Events: func() []checker.Event { return events },
					Moment: time.Second,
				}, story)
			})
		})
	}
}
