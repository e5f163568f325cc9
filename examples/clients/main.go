// Clients is lockfault with four locks that talk to Redis by clients of their own:
// one on redigo, one on rueidis, one on a go-redis client that it sets up itself, and
// the library rueidislock.
//
//	go run . run --strategy 'my-*' --scenario contention,gc-pause-holding,holder-crash
package main

import (
	"fmt"
	"os"

	"github.com/lockfault/lockfault/cli"
	"github.com/lockfault/lockfault/strategies/all"
)

func main() {
	registry, err := all.Registry().With(onRedigo, onRueidis, onGoRedis, onRueidislock)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
	os.Exit(cli.Main(registry))
}
