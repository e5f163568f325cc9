// Command lockfault-full is the command lockfault with all of its parts: the world docker, the work
// queue and the services other than Redis. Archives and images contain it under the name lockfault.
// The command lockfault builds and runs it when a command line needs one of these parts.
package main

import (
	"os"

	"github.com/lockfault/lockfault"
	"github.com/lockfault/lockfault/cmd/lockfault/withdocker"
	"github.com/lockfault/lockfault/cmd/lockfault/withqueue"
	"github.com/lockfault/lockfault/cmd/lockfault/withservices"
	"github.com/lockfault/lockfault/strategies/all"
)

func main() {
	os.Exit(lockfault.Main(all.Registry(), withdocker.Option(), withqueue.Option(), withservices.Option()))
}
