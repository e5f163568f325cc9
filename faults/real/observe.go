package real

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lockfault/lockfault/checker"
	"github.com/lockfault/lockfault/faults"
)

// slack is the granularity of expiry dates: Redis counts in milliseconds, and
// what is left of a lease is rounded down.
const slack = 3 * time.Millisecond

// patience is how long the world waits for a server to answer itself.
const patience = 10 * time.Second

// look reads the lock's key as it stands, all at one moment, with its expiry on
// the true clock: not later than it is, and earlier by less than took.
func (w *World) look(s *server) (key faults.Key, took time.Duration, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	var asked time.Time
	var text *redis.StringCmd
	var fields *redis.MapStringStringCmd
	var left *redis.DurationCmd
	for {
		asked = time.Now()
		tx := s.admin.TxPipeline()
		text, fields, left = tx.Get(ctx, w.cfg.Key), tx.HGetAll(ctx, w.cfg.Key), tx.PTTL(ctx, w.cfg.Key)
		_, err = tx.Exec(ctx)
		if !redis.HasErrorPrefix(err, "LOADING") {
			break
		}
		time.Sleep(time.Millisecond) // until a replica has taken over what its primary has
	}
	took = time.Since(asked)
	w.note(s.Name, s.Name+" to answer", took-s.trip())
	var refused redis.Error
	if err != nil && !errors.Is(err, redis.Nil) && !errors.As(err, &refused) {
		return faults.Key{}, 0, fmt.Errorf("real: %s: looking at the key: %w", s.Name, err)
	}
	// One of GET and HGETALL is refused: the key has one type.
	found := faults.Key{Value: text.Val()}
	for field, count := range fields.Val() { // more than one would be a bug of the strategy
		if found.Value != "" {
			found.Count += "," + field + "×"
		} else {
			found.Value = field
		}
		found.Count += count
	}
	switch {
	case errors.Is(text.Err(), redis.Nil):
		return faults.Key{}, took, nil
	case found.Value == "" && text.Err() != nil:
		found.Value = "(neither a string nor a hash)"
	}
	if ttl := left.Val(); ttl >= 0 {
		found.Expires = asked.Add(time.Duration(math.Floor(float64(ttl) / s.Clock.Rate()))).Sub(w.began)
	}
	return found, took + slack, nil
}

// observe records how the lock's key changed on a server, and plans the moment
// at which it will expire.
func (w *World) observe(s *server, cause checker.Cause, client string, words []string) {
	if w.record == nil || s.admin == nil || !s.Answers() {
		return
	}
	key, took, err := w.look(s)
	if err != nil {
		w.must(err)
		return
	}
	w.saw(s, key, took, cause, client, words)
}

func (w *World) saw(s *server, key faults.Key, took time.Duration, cause checker.Cause, client string, words []string) {
	late := cause == checker.ByCommand || cause == checker.ByRestart
	if late && s.expires != 0 && w.Now() >= s.expires && key.Value != s.value {
		// The lease had run out before, though nobody had looked yet.
		w.changed(s, faults.Key{}, slack, s.ending(), "", nil)
	}
	w.changed(s, key, took, cause, client, words)
}

func (w *World) changed(s *server, key faults.Key, took time.Duration, cause checker.Cause, client string, words []string) {
	event, changed := w.ledger.Saw(s.Node.Name, s.Name, key, cause, client, words, took+s.took)
	if !changed {
		return
	}
	w.tell(event)
	s.value, s.expires, s.took, s.moved = key.Value, key.Expires, took, cause == checker.ByClock
	if s.expiry != nil {
		s.expiry.dead = true
		s.expiry = nil
	}
	w.planExpiry(s, key)
}

func (w *World) planExpiry(s *server, key faults.Key) {
	if key.Expires != 0 {
		s.expiry = w.plan(w.began.Add(key.Expires+time.Millisecond), func() { w.expire(s) })
	}
}

// ending is why a key ends whose time has come.
func (s *server) ending() checker.Cause {
	if s.moved || s.Clock.Rate() != 1 {
		return checker.ByClock
	}
	return checker.ByExpiry
}

// expire records that the lock's key is gone. If it isn't gone yet, because its
// date was rounded, it looks again then.
func (w *World) expire(s *server) {
	s.expiry = nil
	if !s.Answers() {
		return
	}
	key, took, err := w.look(s)
	if err != nil {
		w.must(err)
		return
	}
	if key.Value != "" && key.Value == s.value {
		key.Expires = max(key.Expires, w.Now())
		w.planExpiry(s, key)
		return
	}
	w.saw(s, key, took, s.ending(), "", nil)
}

// settle records that the lock's key is gone before something else happens on
// the server that would be taken for the reason.
func (w *World) settle(s *server) {
	if s.expiry != nil && !s.expiry.dead && w.Now() >= s.expires {
		s.expiry.dead = true
		w.expire(s)
	}
}
