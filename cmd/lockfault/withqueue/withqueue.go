// Package withqueue adds distributed work to a program of package lockfault: the commands queue and
// worker, and the flag --queue of other commands. The package is separate because it links a NATS
// server.
package withqueue

import (
	"github.com/lockfault/lockfault"
	"github.com/lockfault/lockfault/internal/cli"
	"github.com/lockfault/lockfault/internal/queue/natsserver"
)

// Option returns the option for [lockfault.Main] and [lockfault.Run].
func Option() lockfault.Option { return cli.WithQueue(natsserver.Engine{}) }
