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

// row is a part of the agreement table: strategies (all if empty) under scenarios. jobs is the
// number of cells played at a time per two processors; 0 leaves the number to lockfault.
type row struct {
	strategies, scenarios string
	sentinels             bool
	jobs                  int
}

// table returns the agreement table of a world, as lanes that run concurrently; the rows of a lane
// run one after the other. Every strategy and every kind of fault occurs at least once.
func table(world string) [][]row {
	const (
		kinds = "gc-pause-holding,crash-mid-acquire,client-clock-skew,pause-in-release,failover-lost-write,server-clock-forward,quorum-restart-empty,partition-minority"
		data  = "internal/harness/testdata/"
	)
	if world == "docker" { // clients, links and the gate are the same as in process
		return [][]row{{
			{scenarios: "gc-pause-holding"},
			{scenarios: kinds + "," + data + "more-faults.txt," + data + "more-replication.txt", strategies: "set-nx-px-lua"},
			{scenarios: "quorum-restart-empty,partition-minority", strategies: "redlock"},
		}}
	}
	return [][]row{
		{
			{jobs: 8, scenarios: kinds},
			// Without rueidislock, which requests three keys one after the other: with this latency
			// it is random for how many of them the lease lasts.
			{jobs: 4, scenarios: data + "slow-links.txt", strategies: "setnx-*,getset-*,set-*,redisson*,redlock,fenced,redsync*,redislock"},
		},
		{ // mostly waiting and starting servers
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
	lanes := table(o.world)
	if o.first {
		lanes = [][]row{lanes[0][:1]}
	}
	var playing sync.WaitGroup
	for i, lane := range lanes {
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
		args = append(args, "--promote-by", "sentinel")
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
