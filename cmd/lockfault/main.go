// Command lockfault injects faults into distributed locks and reports which guarantees break. The
// program has all built-in strategies, the work queue and the other services.
package main

import (
	"os"

	"github.com/lockfault/lockfault"
	"github.com/lockfault/lockfault/cmd/lockfault/withqueue"
	"github.com/lockfault/lockfault/cmd/lockfault/withservices"
	"github.com/lockfault/lockfault/strategies/all"
)

func main() {
	os.Exit(lockfault.Main(all.Registry(), withqueue.Option(), withservices.Option()))
}
