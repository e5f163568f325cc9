// Command lockfault injects faults into distributed locks and reports which guarantees break. The
// program has all built-in strategies for Redis, in virtual time and on redis-server processes. For
// a command line that needs a container engine, the work queue, another service or the terminal
// interface of play, the program builds the command lockfault-full, and hands over to it.
package main

import (
	"context"
	"io"
	"os"

	"github.com/lockfault/lockfault/internal/cli"
	"github.com/lockfault/lockfault/internal/handover"
	"github.com/lockfault/lockfault/strategies/all"
)

func main() { os.Exit(cli.Main(all.Registry(), cli.WithFull(full()))) }

// full describes the command lockfault-full. Its test compares the names with what the command has.
func full() cli.Full {
	return cli.Full{
		Services: []string{"etcd", "postgres", "pgbouncer", "zookeeper"},
		Strategies: []string{
			"etcd-mutex", "etcd-mutex-revision",
			"postgres-advisory", "postgres-advisory-xact", "postgres-row", "postgres-row-sync", "postgres-row-sequence",
			"pgbouncer-advisory", "pgbouncer-advisory-xact", "pgbouncer-row",
			"zookeeper-lock", "zookeeper-lock-zxid",
		},
		Replace: func(ctx context.Context, need string, stderr io.Writer) (status int, err error) {
			return handover.Replace(ctx, "lockfault-full", need, stderr)
		},
	}
}
