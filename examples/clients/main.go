// Clients is lockfault with three locks that talk to Redis by clients of their own:
// one on redigo, one on rueidis, and one on a go-redis client that it sets up itself.
//
//	go run . run --strategy 'my-*' --scenario contention,gc-pause-holding,holder-crash
package main

import (
	"fmt"
	"os"

	"github.com/lockfault/lockfault"
	"github.com/lockfault/lockfault/strategies/all"
)

func main() {
	registry, err := all.Registry().With(onRedigo, onRueidis, onGoRedis)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
	os.Exit(lockfault.Main(registry))
}
