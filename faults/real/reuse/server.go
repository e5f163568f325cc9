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

// patience is how long a server may take to answer us, and to calm down.
const patience = 5 * time.Second

// A server is one that is lent. It belongs to the loan that has it.
type server struct {
	real.ManagedServer
	name, password string
	clock          bool
	// new is how it was when it was new.
	new view
	// broken says that it was not reset.
	broken bool
}

// connect returns the only connection of its own that the lender has.
func (s *server) connect() *redis.Client {
	o := rediscli.Options(s.Addr())
	o.Password, o.PoolSize, o.DialTimeout, o.ReadTimeout = s.password, 1, patience, patience
	return redis.NewClient(o)
}

// reset takes everything back that a world can do to a server that runs, or may
// have left to be done, and has it rest. Whether that was all, look finds out.
func (s *server) reset() {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	s.broken = s.tryReset(ctx) != nil
}

// resting is how often a second a server looks around that waits to be lent: as
// seldom as it can. To stop it would cost an engine more than that does.
const resting = "1"

// pace sets how often a second the server looks around.
func (s *server) pace(ctx context.Context, hz string) error {
	c := s.connect()
	defer c.Close()
	return c.ConfigSet(ctx, "hz", hz).Err()
}

func (s *server) tryReset(ctx context.Context) error {
	// This is the first to fail if it has ended.
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
	// First those go who could still do something. What a server refuses is left
	// to look: Redis 6.0 knows neither CLIENT UNPAUSE nor functions.
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

// renew makes sure that it is as new: it was reset, and that shows, or it is
// started anew.
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
		return fmt.Errorf("lending: starting %s anew: %w", s.name, err)
	}
	s.broken = false
	return nil
}

// A view is how a server looks to somebody who has just connected: whatever of it
// doesn't change by itself.
type view map[string]string

// shown are the fields of INFO that a view has. Older servers have fewer.
var shown = [...]string{
	"redis_mode", "role", "connected_slaves", "master_failover_state",
	"connected_clients", "blocked_clients", "tracking_clients", "clients_in_timeout_table",
	"watching_clients", "total_watched_keys", "total_blocking_keys",
	"pubsub_channels", "pubsub_patterns", "pubsubshard_channels", "pubsub_clients",
	"number_of_cached_scripts", "number_of_functions", "number_of_libraries",
	"loading", "async_loading", "rdb_bgsave_in_progress", "aof_rewrite_in_progress", "aof_rewrite_scheduled", "aof_last_write_status",
}

// inspect returns how the server looks. What will be over in a moment is waited for:
// connections that end, and writers of files.
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
	delete(config, "appendfilename") // hosts choose another to start a server empty
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

// unsure is how exactly servers know the time: some ask the system for it once a
// millisecond.
const unsure = 2 * time.Millisecond

// clockIs returns "right" for a clock that showed that time between two moments,
// if it is, and by how much it is wrong else.
func clockIs(shown, from, to time.Time) string {
	switch {
	case shown.Before(from.Add(-unsure)):
		return fmt.Sprintf("%v slow", from.Sub(shown))
	case shown.After(to.Add(unsure)):
		return fmt.Sprintf("%v fast", shown.Sub(to))
	}
	return "right"
}

// difference says where two views differ; empty if they don't.
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
