// Package withservices adds etcd, PostgreSQL and ZooKeeper to a program of package lockfault. The
// package adds worlds for locks that run on these services, and the built-in locks of --service.
// The package is separate because it links the services' client libraries.
package withservices

import (
	"github.com/lockfault/lockfault"
	"github.com/lockfault/lockfault/internal/cli"
	"github.com/lockfault/lockfault/internal/services"
)

// Option returns the option for [lockfault.Main] and [lockfault.Run].
func Option() lockfault.Option { return cli.WithServices(services.All()...) }
