package reuse

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lockfault/lockfault/faults/real"
	"github.com/lockfault/lockfault/internal/rediscli"
)

// patience is the maximum time for a server to answer. A server may take half of it to become calm.
const patience = 5 * time.Second

// A server is a server that can be lent. Only the loan that holds it may use it.
type server struct {
	real.ManagedServer
	name, password string
	clock          bool
	// new is the state of the server when it was new.
	new view
	// broken reports that the server could not be reset.
	broken bool
}

// connect returns a client with a single connection.
func (s *server) connect() *redis.Client {
	o := rediscli.Options(s.Addr())
	o.Password, o.PoolSize, o.DialTimeout, o.ReadTimeout = s.password, 1, patience, patience
	return redis.NewClient(o)
}

// reset undoes everything that a world can have done to a running server, and lowers its timer
// frequency. inspect verifies the result before the next loan.
func (s *server) reset() {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	s.broken = s.tryReset(ctx) != nil
}

// resting is the timer frequency (hz, per second) of a server that waits to be lent: the minimum.
// To stop the process would cost a container engine more than these timers do.
const resting = "1"

// pace sets the server's timer frequency (hz), in calls per second.
func (s *server) pace(ctx context.Context, hz string) error {
	c := s.connect()
	defer c.Close()
	return c.ConfigSet(ctx, "hz", hz).Err()
}

func (s *server) tryReset(ctx context.Context) error {
	// Resume fails first if the process has ended.
	if err := s.Resume(); err != nil {
		return err
	}
	if s.clock {
		if err := s.SetClock(0, 1); err != nil {
			return err
		}
	}
	c := s.connect()
	defer c.Close()
	// First disconnect all peers that could still send commands. Commands that the server refuses
	// are ignored, and inspect finds what they would have reset: Redis 6.0 supports neither CLIENT
	// UNPAUSE nor functions.
	for _, order := range []string{
		"REPLICAOF NO ONE", "CLIENT KILL TYPE normal SKIPME yes", "CLIENT KILL TYPE pubsub", "CLIENT KILL TYPE replica",
		"CLIENT KILL TYPE master", "CLIENT UNPAUSE", "FLUSHALL", "SCRIPT FLUSH", "FUNCTION FLUSH", "CONFIG RESETSTAT",
	} {
		var words []any
		for word := range strings.FieldsSeq(order) {
			words = append(words, word)
		}
		var refused redis.Error
		if err := c.Do(ctx, words...).Err(); err != nil && !errors.As(err, &refused) {
			return err
		}
	}
	return c.ConfigSet(ctx, "hz", resting).Err()
}

// renew brings the server to its initial state: it verifies that the reset was complete, and
// otherwise starts the server again.
func (s *server) renew(ctx context.Context) error {
	if !s.broken && s.pace(ctx, s.new["config hz"]) == nil {
		is, err := s.inspect(ctx)
		if err == nil && is.difference(s.new) == "" {
			return nil
		}
	}
	err := s.Kill()
	if err == nil && s.clock {
		err = s.SetClock(0, 1)
	}
	if err == nil {
		err = s.Restart(ctx, true)
	}
	if err == nil {
		s.new, err = s.inspect(ctx)
	}
	if err != nil {
		return fmt.Errorf("reuse: starting %s anew: %w", s.name, err)
	}
	s.broken = false
	return nil
}

// A view is the state of a server as a new connection sees it, without values that change by
// themselves.
type view map[string]string

// shown are the fields of INFO in a view. Older servers have fewer.
var shown = [...]string{
	"redis_mode", "role", "connected_slaves", "master_failover_state",
	"connected_clients", "blocked_clients", "tracking_clients", "clients_in_timeout_table",
	"watching_clients", "total_watched_keys", "total_blocking_keys",
	"pubsub_channels", "pubsub_patterns", "pubsubshard_channels", "pubsub_clients",
	"number_of_cached_scripts", "number_of_functions", "number_of_libraries",
	"loading", "async_loading", "rdb_bgsave_in_progress", "aof_rewrite_in_progress", "aof_rewrite_scheduled", "aof_last_write_status",
}

// inspect returns the server's view. It waits for connections to end and for file writers to
// finish, at most half of patience.
func (s *server) inspect(ctx context.Context) (view, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	c := s.connect()
	defer c.Close()
	var v view
	for until := time.Now().Add(patience / 2); ; time.Sleep(time.Millisecond) {
		info, err := rediscli.Info(ctx, c)
		if err != nil {
			return nil, err
		}
		v = view{}
		for _, name := range shown {
			v[name] = info[name]
		}
		for name, keys := range info {
			if number, ok := strings.CutPrefix(name, "db"); ok && strings.HasPrefix(keys, "keys=") {
				v["keys in database "+number] = keys
			}
		}
		calm := v["connected_clients"] == "1" && v["rdb_bgsave_in_progress"] == "0" &&
			v["aof_rewrite_in_progress"] == "0" && v["aof_rewrite_scheduled"] == "0" && v["loading"] == "0"
		if calm || time.Now().After(until) {
			break
		}
	}
	asked := time.Now()
	now, err := c.Time(ctx).Result()
	if err != nil {
		return nil, err
	}
	v["clock"] = clockIs(now, asked, time.Now())
	config, err := c.ConfigGet(ctx, "*").Result()
	if err != nil {
		return nil, err
	}
	delete(config, "appendfilename") // hosts choose another name to start a server empty
	for name, value := range config {
		v["config "+name] = value
	}
	users, err := c.Do(ctx, "ACL", "LIST").StringSlice()
	if err != nil {
		return nil, err
	}
	v["users"] = strings.Join(users, "\n")
	return v, nil
}

// unsure is the tolerance for clocks: some servers read the system's time only once per
// millisecond.
const unsure = 2 * time.Millisecond

// clockIs compares a time that a clock showed between two moments. It returns "right", or the error
// of the clock, such as "5ms slow".
func clockIs(shown, from, to time.Time) string {
	switch {
	case shown.Before(from.Add(-unsure)):
		return fmt.Sprintf("%v slow", from.Sub(shown))
	case shown.After(to.Add(unsure)):
		return fmt.Sprintf("%v fast", shown.Sub(to))
	}
	return "right"
}

// difference describes the first difference of two views; empty if they are equal.
func (v view) difference(other view) string {
	all := maps.Clone(other)
	maps.Copy(all, v)
	for _, name := range slices.Sorted(maps.Keys(all)) {
		if v[name] != other[name] {
			return fmt.Sprintf("%s is %q and was %q", name, v[name], other[name])
		}
	}
	return ""
}
