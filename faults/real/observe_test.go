package real

import (
	"context"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/lockfault/lockfault/faults"
)

// ending makes a server's keys expire after its first answer.
type ending struct {
	server *miniredis.Miniredis
	asked  int
}

func (*ending) DialHook(next redis.DialHook) redis.DialHook { return next }

func (*ending) ProcessHook(next redis.ProcessHook) redis.ProcessHook { return next }

func (e *ending) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		err := next(ctx, cmds)
		if e.asked++; e.asked == 1 {
			e.server.FastForward(time.Minute)
		}
		return err
	}
}

// TestKeysThatEndWhileTheyAreRead checks that a key's content and expiry are read at one moment,
// for all types: a key that expires meanwhile is complete or absent.
func TestKeysThatEndWhileTheyAreRead(t *testing.T) {
	for _, c := range []struct {
		kind string
		add  func(*miniredis.Miniredis) error
	}{
		{"string", func(m *miniredis.Miniredis) error { return m.Set("lock", "A-value-1") }},
		{"hash", func(m *miniredis.Miniredis) error { m.HSet("lock", "A-value-1", "1"); return nil }},
		{"list", func(m *miniredis.Miniredis) error { _, err := m.Push("lock", "A-value-1"); return err }},
		{"set", func(m *miniredis.Miniredis) error { _, err := m.SetAdd("lock", "A-value-1"); return err }},
		{"zset", func(m *miniredis.Miniredis) error { _, err := m.ZAdd("lock", 1, "A-value-1"); return err }},
	} {
		t.Run(c.kind, func(t *testing.T) {
			m := miniredis.RunT(t)
			s := alone(nil, time.Second)
			s.world.cfg.Lock = faults.SingleKeyLock("lock")
			s.admin = redis.NewClient(&redis.Options{Addr: m.Addr()})
			defer s.admin.Close()
			look := func() faults.Key {
				t.Helper()
				keys, _, err := s.world.readKeys(s)
				if err != nil || len(keys) != 1 {
					t.Fatal(keys, err)
				}
				return keys[0]
			}
			add := func() {
				t.Helper()
				if err := c.add(m); err != nil {
					t.Fatal(err)
				}
				m.SetTTL("lock", 10*time.Second)
			}
			add()
			if found := look(); found.Exists() {
				add()
				if found := look(); found.Type != c.kind || len(found.Words) == 0 || found.Expires == 0 {
					t.Errorf("found %+v; want a %s with its end", found, c.kind)
				}
			}
			add()
			s.admin.AddHook(&ending{server: m})
			s.closer = unasked
			found := look()
			if found.Exists() && (found.Type != c.kind || len(found.Words) == 0 || found.Expires == 0) {
				t.Errorf("found %+v; want a %s with all that it holds, or none", found, c.kind)
			}
		})
	}
}
