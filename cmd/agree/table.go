package main

import (
	"context"
	"fmt"
	"time"

	"github.com/lockfault/lockfault/reports"
)

// row is a part of the agreement table: some strategies, or all that there are,
// under some scenarios.
type row struct {
	strategies, scenarios string
	sentinels             bool
}

// table returns the agreement table of a world. Every strategy and every kind of
// fault is in there at least once.
func table(world string) []row {
	const (
		kinds = "gc-pause-holding,crash-mid-acquire,client-clock-skew,pause-in-release,failover-lost-write,server-clock-forward,quorum-restart-empty,partition-minority"
		data  = "harness/testdata/"
	)
	if world == "docker" { // clients, links and the gate are the same there
		return []row{
			{scenarios: "gc-pause-holding"},
			{scenarios: kinds + "," + data + "more-faults.txt", strategies: "set-nx-px-lua"},
			{scenarios: "quorum-restart-empty,partition-minority", strategies: "redlock"},
		}
	}
	return []row{
		{scenarios: kinds},
		{scenarios: data + "more-faults.txt", strategies: "set-nx-px-lua,redisson,fenced"},
		{scenarios: data + "slow-links.txt"},
		{scenarios: data + "begins.txt", strategies: "set-nx-px-lua,set-nx-px-del,redisson,set-wait,fenced,redislock"},
		{scenarios: data + "replication-mends.txt," + data + "replication-breaks.txt", strategies: "set-nx-px-lua,redisson,set-wait,fenced,redlock"},
		{scenarios: "failover-*", strategies: "set-nx-px-lua,redisson", sentinels: true},
	}
}

func (o options) playTable(ctx context.Context, dir string, t *tally) error {
	for _, r := range table(o.world) {
		args := []string{"--scenario", r.scenarios}
		if r.strategies != "" {
			args = append(args, "--strategy", r.strategies)
		}
		if r.sentinels {
			args = append(args, "--failover", "sentinel")
		}
		wrong := func(c reports.Cell) bool { return !agreesWithSim(c) || !c.AsExpected }
		begun, before := time.Now(), *t
		if _, err := o.play(ctx, dir, t, wrong, args...); err != nil {
			return err
		}
		fmt.Printf("%s: %d cells, %d played again, %v\n", r.scenarios, t.cells-before.cells, t.again-before.again, time.Since(begun).Round(time.Second))
	}
	return nil
}
