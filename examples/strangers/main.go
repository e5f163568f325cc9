// Strangers is lockfault with locks that their author wrote from the documentation alone.
package main

import (
	"fmt"
	"os"

	"github.com/lockfault/lockfault"
	"github.com/lockfault/lockfault/strategies"
	"github.com/lockfault/lockfault/strategies/all"
)

var mine []strategies.Strategy

func main() {
	registry, err := all.Registry().With(mine...)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
	os.Exit(lockfault.Main(registry))
}
