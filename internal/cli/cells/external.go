package cells

import (
	"context"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/lockfault/lockfault/internal/cli/kit"
	"github.com/lockfault/lockfault/internal/worlds"
)

// redisVariable is the environment variable that replaces --redis, so that passwords do not appear
// in process lists.
const redisVariable = "LOCKFAULT_REDIS"

func (o *Settings) addRedisFlag(cmd *cobra.Command) {
	cmd.Flags().StringSliceVar(&o.Place.Redis, "redis", nil,
		"`addresses` of the world external, one for each node, separated by commas: host:port or redis[s]://user:password@host:port/db (default: from $"+redisVariable+")")
}

// checkRedis checks that the world external has servers, reads redisVariable if --redis is not set,
// and chooses a name for the run.
func (o *Settings) checkRedis() error {
	if !slices.Contains(o.Worlds, worlds.External) {
		return nil
	}
	if list := os.Getenv(redisVariable); len(o.Place.Redis) == 0 && list != "" {
		o.Place.Redis = strings.Split(list, ",")
	}
	if len(o.Place.Redis) == 0 {
		return kit.Usage("--world %s needs --redis, such as --redis redis://127.0.0.1:6379, or $%s", worlds.External, redisVariable)
	}
	kit.SilenceRedis() // returned errors already describe failed connections
	o.Place.Run = worlds.NewRun()
	return nil
}

// departure is the longest time for cleaning up after a run.
const departure = 5 * time.Minute

// leave removes the run's data from servers that the user provides, even if ctx is done. leave
// returns the error of the cleanup or, without one, ended.
func (o *Settings) leave(ctx context.Context, world string, ended error) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), departure)
	defer cancel()
	if err := o.At(world).Leave(ctx); err != nil {
		return err
	}
	return ended
}
