package main

import (
	"context"
	"fmt"
	"path/filepath"
	"runtime"
	"sync"
	"time"

	"github.com/lockfault/lockfault/reports"
)

// row is a part of the agreement table: some strategies, or all that there are,
// under some scenarios; with that many cells for two processors at a time, 0 leaves
// that to lockfault.
type row struct {
	strategies, scenarios string
	sentinels             bool
	jobs                  int
}

// table returns the agreement table of a world, as lanes of rows that are played
// one after the other, beside the other lanes. Every strategy and every kind of
// fault is in there at least once.
func table(world string) [][]row {
	const (
		kinds = "gc-pause-holding,crash-mid-acquire,client-clock-skew,pause-in-release,failover-lost-write,server-clock-forward,quorum-restart-empty,partition-minority"
		data  = "harness/testdata/"
	)
	if world == "docker" { // clients, links and the gate are the same there
		return [][]row{{
			{scenarios: "gc-pause-holding"},
			{scenarios: kinds + "," + data + "more-faults.txt," + data + "more-replication.txt", strategies: "set-nx-px-lua"},
			{scenarios: "quorum-restart-empty,partition-minority", strategies: "redlock"},
		}}
	}
	return [][]row{
		{
			{jobs: 8, scenarios: kinds},
			// Not rueidislock, which asks for three keys one after the other: with so much latency it is chance for how many the lease lasts.
			{jobs: 4, scenarios: data + "slow-links.txt", strategies: "setnx-*,getset-*,set-*,redisson*,redlock,fenced,redsync*,redislock"},
		},
		{ // mostly of waiting, and of servers that start
			{jobs: 4, scenarios: data + "more-faults.txt," + data + "more-replication.txt", strategies: "set-nx-px-lua,redisson,fenced"},
			{jobs: 4, scenarios: data + "replication-mends.txt," + data + "replication-breaks.txt," + data + "restart-empty.txt", strategies: "set-nx-px-lua,redisson,set-wait,fenced,redlock"},
			{jobs: 6, scenarios: "acquire-cancelled,partition-after-release,two-failovers", strategies: "set-nx-px-del,redisson,set-wait"},
			{jobs: 6, scenarios: data + "begins.txt," + data + "begins-cut.txt," + data + "cancels.txt," + data + "failover-clean-up.txt," + data + "ends-in-hand.txt", strategies: "set-nx-px-lua,set-nx-px-del,redisson,set-wait,fenced,redislock"},
			{jobs: 4, scenarios: "failover-*", strategies: "set-nx-px-lua,redisson", sentinels: true},
		},
	}
}

func (o options) playTable(ctx context.Context, dir string, t *tally) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var playing sync.WaitGroup
	for i, lane := range table(o.world) {
		playing.Go(func() {
			for _, r := range lane {
				if err := o.playRow(ctx, filepath.Join(dir, fmt.Sprintf("lane-%d", i+1)), r, t); err != nil {
					cancel(err)
					return
				}
			}
		})
	}
	playing.Wait()
	return context.Cause(ctx)
}

func (o options) playRow(ctx context.Context, dir string, r row, t *tally) error {
	args := []string{"--scenario", r.scenarios}
	if r.strategies != "" {
		args = append(args, "--strategy", r.strategies)
	}
	if r.sentinels {
		args = append(args, "--failover", "sentinel")
	}
	if r.jobs > 0 {
		args = append(args, "--jobs", fmt.Sprint(max(1, r.jobs*runtime.NumCPU()/2)))
	}
	wrong := func(c reports.Cell) (bool, string) { return !agreesWithSim(c) || !c.AsExpected, "" }
	begun := time.Now()
	mine := &tally{}
	if _, err := o.play(ctx, dir, mine, wrong, args...); err != nil {
		return err
	}
	fmt.Printf("%s: %d cells, %d played again, %v\n", r.scenarios, mine.cells, mine.reruns, time.Since(begun).Round(time.Second))
	t.add(mine)
	return nil
}
