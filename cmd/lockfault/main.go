// Lockfault breaks distributed locks on purpose, and says what broke.
package main

import (
	"os"

	"github.com/lockfault/lockfault/cli"
	"github.com/lockfault/lockfault/queue/natsd"
	"github.com/lockfault/lockfault/services"
	"github.com/lockfault/lockfault/strategies/all"
)

func main() {
	os.Exit(cli.Main(all.Registry(), cli.WithQueue(natsd.Engine{}), cli.WithServices(services.All()...)))
}
