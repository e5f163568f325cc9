// Services is lockfault with two locks of one's own on another service than Redis: on PostgreSQL, by pgx.
//
//	go run . run --strategy my-row --world process --scenario contention,gc-pause-holding,failover-replicated
//	go run . run --strategy naive-row --world process --scenario holder-crash,release-twice
package main

import (
	"fmt"
	"os"

	"github.com/lockfault/lockfault"
	"github.com/lockfault/lockfault/cmd/lockfault/withservices"
	"github.com/lockfault/lockfault/strategies/all"
)

func main() {
	registry, err := all.Registry().With(myRow, naiveRow)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
	os.Exit(lockfault.Main(registry, withservices.Option()))
}
