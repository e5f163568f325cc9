package kit

import (
	"context"

	"github.com/redis/go-redis/v9"
)

// SilenceRedis silences go-redis, which logs each failed connection. The returned errors already
// describe these.
func SilenceRedis() { redis.SetLogger(nopLogger{}) }

// nopLogger discards everything.
type nopLogger struct{}

func (nopLogger) Printf(context.Context, string, ...any) {}
