// Package rediscli is what this module's connections to Redis have in common,
// its own and those of the clients under test: how they are set up, and how the
// server's INFO is read. It imports nothing of this module.
package rediscli

import (
	"context"
	"strings"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"
)

// Options returns the settings of a go-redis client that does what it is told,
// once, and nothing of its own accord: it tries nothing again, names neither itself
// nor its library, and asks for no news of maintenance. It speaks RESP2 and goes by
// the deadlines of contexts. All else is as in go-redis, and the caller's to set.
func Options(addr string) *redis.Options {
	return &redis.Options{
		Addr:                     addr,
		Protocol:                 2,
		DisableIdentity:          true,
		MaxRetries:               -1,
		DialerRetries:            1,
		ContextTimeoutEnabled:    true,
		MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
	}
}

// Asked is whoever can be asked for INFO: a [redis.Client], say.
type Asked interface {
	Info(ctx context.Context, sections ...string) *redis.StringCmd
}

// Info returns the fields of those sections of a server's INFO, of the default
// ones if none is named. It blocks until the server answers or ctx is done.
func Info(ctx context.Context, server Asked, sections ...string) (map[string]string, error) {
	text, err := server.Info(ctx, sections...).Result()
	if err != nil {
		return nil, err
	}
	return ParseInfo(text), nil
}

// ParseInfo reads the text of INFO: lines of a name and a value with a colon
// between them. Others, such as headings, are left out.
func ParseInfo(text string) map[string]string {
	fields := map[string]string{}
	for line := range strings.Lines(text) {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), ":"); ok && !strings.HasPrefix(name, "#") {
			fields[name] = value
		}
	}
	return fields
}
