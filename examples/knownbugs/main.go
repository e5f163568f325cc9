// Trackrecord is lockfault with other people's lock libraries under options, and on
// clients, that bring out what is known to be wrong with them, and with the options that
// cure it. The libraries are as their authors published them. docs/track-record.md has
// what each shows.
//
//	go run . run --strategy redsync-constant-value --scenario ./scripts/constant-value.txt
package main

import (
	"fmt"
	"os"
	"slices"

	"github.com/zeromicro/go-zero/core/logx"

	"github.com/lockfault/lockfault"
	"github.com/lockfault/lockfault/strategies/all"
)

func main() {
	logx.Disable() // it would write into what a client says on its standard output
	registry, err := all.Registry().With(slices.Concat(onRedsync(), onRedislock(), onRueidislock(), onGoZero(), onGoRedis())...)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
	os.Exit(lockfault.Main(registry))
}
