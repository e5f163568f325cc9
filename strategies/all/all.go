// Package all combines the strategies of this module in one registry. The package is separate
// because package strategies cannot import package thirdparty, which imports strategies.
package all

import (
	"github.com/lockfault/lockfault/strategies"
	"github.com/lockfault/lockfault/strategies/thirdparty"
)

// Registry returns the registry of all strategies of this module: the built-in algorithms, followed
// by the adapted libraries.
func Registry() strategies.Registry {
	registry, err := strategies.Builtin().WithBuiltin(thirdparty.All()...)
	if err != nil {
		// Both lists are constant, and a test calls this function.
		panic(err)
	}
	return registry
}
