// Package all puts the strategies of this module into one registry. It exists
// because strategies can't import thirdparty, which imports it.
package all

import (
	"github.com/lockfault/lockfault/strategies"
	"github.com/lockfault/lockfault/strategies/thirdparty"
)

// Registry returns the registry of all strategies that come with this module:
// the built-in algorithms and then the adapted libraries.
func Registry() strategies.Registry {
	registry, err := strategies.Builtin().WithBuiltin(thirdparty.All()...)
	if err != nil {
		// Both lists are constant; a test calls this function.
		panic(err)
	}
	return registry
}
