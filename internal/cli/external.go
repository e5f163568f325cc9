package cli

import (
	"context"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/spf13/cobra"

	"github.com/lockfault/lockfault/internal/worlds"
)

// redisVariable is the environment variable that names what --redis does, for
// those who want no password in a list of processes.
const redisVariable = "LOCKFAULT_REDIS"

func (o *playOptions) addRedisFlag(cmd *cobra.Command) {
	cmd.Flags().StringSliceVar(&o.place.Redis, "redis", nil,
		"`addresses` of the world external, with commas between them, one for each node: host:port or redis[s]://user:password@host:port/db; default from $"+redisVariable)
}

// checkRedis checks what --redis says beside the other flags, and names the run.
func (o *playOptions) checkRedis() error {
	if !slices.Contains(o.worlds, worlds.External) {
		if len(o.place.Redis) > 0 {
			return usage("--redis names servers that are not played with: add --world %s", worlds.External)
		}
		return nil
	}
	if list := os.Getenv(redisVariable); len(o.place.Redis) == 0 && list != "" {
		o.place.Redis = strings.Split(list, ",")
	}
	if len(o.place.Redis) == 0 {
		return usage("--world %s needs --redis, such as --redis redis://127.0.0.1:6379, or $%s", worlds.External, redisVariable)
	}
	redis.SetLogger(nopLogger{}) // what it would say of a failed connection, errors say too
	o.place.Run = worlds.NewRun()
	return nil
}

// departure is how long it may take to clean up behind a run.
const departure = 5 * time.Minute

// leave removes what a run has left at a place that is not our own, and returns
// how playing there ended. What may be left is said first.
func (o *playOptions) leave(ctx context.Context, world string, ended error) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), departure)
	defer cancel()
	if err := o.at(world).Leave(ctx); err != nil {
		return err
	}
	return ended
}
