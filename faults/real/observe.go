package real

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lockfault/lockfault/checker"
	"github.com/lockfault/lockfault/faults"
)

// slack is the granularity of expiry times: Redis counts in milliseconds, and rounds down the rest
// of a lease.
const slack = 3 * time.Millisecond

// patience is how long the world waits for a server to answer the world's own requests.
const patience = 10 * time.Second

// readKeys reads the lock's keys, all at one moment. Their expiry times, on the true clock, are not
// later than the real ones, and earlier by less than took.
func (w *World) readKeys(s *server) (keys []faults.Key, took time.Duration, err error) {
	if l := s.looker(); l != nil {
		return s.ask(l)
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	var asked time.Time
	var found []*sighting
	apart := s.Full // a server without memory refuses transactions
	for {
		asked = time.Now()
		found = nil
		tx := s.admin.TxPipeline()
		if apart {
			tx = s.admin.Pipeline() // executed at one moment unless another client's request comes between
		}
		for _, name := range w.cfg.Lock.Keys {
			found = append(found, sight(ctx, tx, name, s.closer == asks))
		}
		_, err = tx.Exec(ctx)
		switch {
		case redis.HasErrorPrefix(err, "LOADING"):
			time.Sleep(time.Millisecond) // until a replica has loaded its primary's data
			continue
		case answered(err) && s.closer == unasked && slices.ContainsFunc(found, (*sighting).other):
			s.closer = asks
			continue
		case redis.HasErrorPrefix(err, "EXECABORT") && s.closer == asks:
			s.closer = mayNot // a transaction with a refused command is refused as a whole
			continue
		case redis.HasErrorPrefix(err, "EXECABORT") && !apart:
			apart = true
			continue
		}
		break
	}
	for _, f := range found {
		key := f.key()
		if ttl := f.left.Val(); ttl >= 0 && key.Exists() {
			key.Expires = asked.Add(time.Duration(math.Floor(float64(ttl) / s.Clock.Rate()))).Sub(w.began)
		}
		keys = append(keys, key)
	}
	took = time.Since(asked)
	w.note(s.Name, s.Name+" to answer", took-s.trip())
	if err != nil && !answered(err) {
		return nil, 0, fmt.Errorf("real: %s: looking at the lock's keys: %w", s.Name, err)
	}
	return keys, took + slack, nil
}

// answered reports whether an error is a server's answer.
func answered(err error) bool {
	var refused redis.Error
	return errors.Is(err, redis.Nil) || errors.As(err, &refused)
}

// otherType is the type of a key that holds none of the requested types, such as a stream. A type
// that the user may not read counts, too. Such a key has no owner.
const otherType = "other"

// Whether a server is asked for keys that are neither strings nor hashes: after the first such key,
// unless the server doesn't permit it.
const (
	unasked = iota
	asks
	mayNot
)

// A sighting holds the replies to all reads of one key. The server refuses the reads that don't fit
// the key's type.
type sighting struct {
	text   *redis.StringCmd
	fields *redis.MapStringStringCmd
	left   *redis.DurationCmd

	// Nil unless more types were asked for.
	list    *redis.StringSliceCmd
	members *redis.StringSliceCmd
	scores  *redis.ZSliceCmd
}

// sight asks about a key and, if closer is set, about more types.
func sight(ctx context.Context, ask redis.Pipeliner, name string, closer bool) *sighting {
	s := &sighting{text: ask.Get(ctx, name), fields: ask.HGetAll(ctx, name), left: ask.PTTL(ctx, name)}
	if closer {
		s.list, s.members, s.scores = ask.LRange(ctx, name, 0, -1), ask.SMembers(ctx, name), ask.ZRangeWithScores(ctx, name, 0, -1)
	}
	return s
}

// other reports whether the key is neither a string nor a hash.
func (s *sighting) other() bool { return s.key().Type == otherType }

func (s *sighting) key() faults.Key {
	switch {
	case s.text.Err() == nil:
		return faults.Key{Type: "string", Words: []string{s.text.Val()}}
	case errors.Is(s.text.Err(), redis.Nil):
		return faults.Key{}
	case s.fields.Err() == nil:
		return faults.Key{Type: "hash", Words: faults.Hash(s.fields.Val())}
	case s.list == nil:
	case s.list.Err() == nil:
		return faults.Key{Type: "list", Words: s.list.Val()}
	case s.members.Err() == nil:
		return faults.Key{Type: "set", Words: slices.Sorted(slices.Values(s.members.Val()))}
	case s.scores.Err() == nil:
		var all []faults.Scored
		for _, z := range s.scores.Val() {
			all = append(all, faults.Scored{Member: fmt.Sprint(z.Member), Score: z.Score})
		}
		return faults.Key{Type: "zset", Words: faults.SortedSet(all)}
	}
	return faults.Key{Type: otherType}
}

// find reads the lock's keys on a server before anything is recorded.
func (w *World) find(s *server) error {
	if !s.hasInspector() || !s.Answers() {
		return nil
	}
	var keys []faults.Key
	var took time.Duration
	look := func() (bool, error) {
		var err error
		if keys, took, err = w.readKeys(s); errors.Is(err, ErrNotNow) || err != nil && IsCluster(w.cfg.Service) && !errors.Is(err, ErrQuery) {
			return false, nil // the inspector has to connect first
		}
		return true, err
	}
	if err := await("to see whose the lock is on "+s.Name, look); err != nil {
		return err
	}
	w.ledger.Found(s.Name, keys)
	s.keys, s.took = keys, took
	w.planExpiry(s, keys)
	return nil
}

// observe records how the lock's keys changed on a server, plans the next expiry, and returns the
// effect of the command.
func (w *World) observe(s *server, cause checker.Cause, client string, words []string) (did faults.Effect) {
	if w.record == nil || !s.hasInspector() || !s.Answers() {
		return ""
	}
	if IsCluster(w.cfg.Service) {
		return w.notice(s, nil)
	}
	keys, took, err := w.readKeys(s)
	if err != nil {
		w.must(err)
		return ""
	}
	return w.saw(s, keys, took, cause, client, words)
}

func (w *World) saw(s *server, keys []faults.Key, took time.Duration, cause checker.Cause, client string, words []string) (did faults.Effect) {
	w.settleHanded(s)
	if cause == checker.ByCommand || cause == checker.ByRestart {
		w.overdue(s, keys)
	}
	return w.changed(s, keys, took, cause, client, words, 0)
}

// overdue records that a lease expired before the keys changed to the given ones, if the expiry
// isn't recorded yet.
func (w *World) overdue(s *server, keys []faults.Key) {
	if left, over := faults.Without(s.keys, w.Now()); over && !faults.SameKeys(keys, s.keys) {
		w.changed(s, left, slack, s.ending(), "", nil, 0)
	}
}

func (w *World) changed(s *server, keys []faults.Key, took time.Duration, cause checker.Cause, client string, words []string, sent time.Duration) (did faults.Effect) {
	event, did, changed := w.ledger.Saw(s.Node.Name, s.Name, keys, cause, client, words, took+s.took)
	if !changed {
		return ""
	}
	if event.Client != "" {
		event.Sent = sent
	}
	w.stands(s, event, keys, took)
	return did
}

// stands records a change of the lock's keys, and plans the next expiry.
func (w *World) stands(s *server, event checker.Event, keys []faults.Key, took time.Duration) {
	w.emit(event)
	s.keys, s.took, s.moved = keys, took, event.Cause == checker.ByClock
	if s.expiry != nil {
		s.expiry.dead = true
		s.expiry = nil
	}
	w.planExpiry(s, keys)
}

func (w *World) planExpiry(s *server, keys []faults.Key) {
	if at := faults.Expiry(keys); at != 0 {
		s.expiry = w.plan(w.began.Add(at+time.Millisecond), func() { w.expire(s) })
	}
}

// ending returns the cause of a key's expiry.
func (s *server) ending() checker.Cause {
	if s.moved || s.Clock.Rate() != 1 {
		return checker.ByClock
	}
	return checker.ByExpiry
}

// expire records that a key of the lock has expired. If the key still exists, because its expiry
// time was rounded, expire plans another look.
func (w *World) expire(s *server) {
	s.expiry = nil
	if !s.Answers() {
		return
	}
	keys, took, err := w.readKeys(s)
	if err != nil {
		w.must(err)
		return
	}
	if faults.SameKeys(keys, s.keys) {
		for i := range keys {
			if keys[i].Expires != 0 {
				keys[i].Expires = max(keys[i].Expires, w.Now())
			}
		}
		w.planExpiry(s, keys)
		return
	}
	w.saw(s, keys, took, s.ending(), "", nil)
}

// settle records a due expiry of the lock's key before anything else happens on the server that
// would be taken for the cause.
func (w *World) settle(s *server) {
	if s.expiry != nil && !s.expiry.dead && w.Now() >= faults.Expiry(s.keys) {
		s.expiry.dead = true
		w.expire(s)
	}
}
