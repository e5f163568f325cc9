// Package withservices adds etcd, PostgreSQL and ZooKeeper to a program of package lockfault: worlds for
// locks that run on them, and the built-in locks of --service. It is a package of its own because it
// links the clients of these services.
package withservices

import (
	"github.com/lockfault/lockfault"
	"github.com/lockfault/lockfault/internal/cli"
	"github.com/lockfault/lockfault/internal/services"
)

// Option returns the option for [lockfault.Main] and [lockfault.Run].
func Option() lockfault.Option { return cli.WithServices(services.All()...) }
