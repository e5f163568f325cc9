// Package withdocker adds the world docker to a program of package lockfault. The package is
// separate because it links the client library of container engines.
package withdocker

import (
	"github.com/lockfault/lockfault"
	"github.com/lockfault/lockfault/internal/cli"
	"github.com/lockfault/lockfault/internal/containers"
)

// Option returns the option for [lockfault.Main] and [lockfault.Run].
func Option() lockfault.Option { return cli.WithContainers(containers.Docker{}) }
