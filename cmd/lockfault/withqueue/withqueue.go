// Package withqueue adds the sharing of work with other machines to a program of package lockfault: the
// commands queue and worker, and --on of others. It is a package of its own because it links a server of
// NATS.
package withqueue

import (
	"github.com/lockfault/lockfault"
	"github.com/lockfault/lockfault/internal/cli"
	"github.com/lockfault/lockfault/internal/queue/natsserver"
)

// Option returns the option for [lockfault.Main] and [lockfault.Run].
func Option() lockfault.Option { return cli.WithQueue(natsserver.Engine{}) }
