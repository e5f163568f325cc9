package real

import (
	"context"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lockfault/lockfault/faults"
)

// movable is a server whose clock can be set.
type movable struct{ ManagedServer }

func (movable) SetClock(time.Duration, float64) error { return nil }

// clock answers TIME for a server that keeps its old clock for a while.
type clock struct {
	old   int // how many answers are by the old clock
	moved time.Duration
}

func (*clock) DialHook(next redis.DialHook) redis.DialHook { return next }

func (*clock) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

func (c *clock) ProcessHook(redis.ProcessHook) redis.ProcessHook {
	return func(_ context.Context, cmd redis.Cmder) error {
		now := time.Now()
		if c.old--; c.old < 0 {
			now = now.Add(c.moved)
		}
		cmd.(*redis.TimeCmd).SetVal(now)
		return nil
	}
}

// TestSetClockWaits checks that SetClock returns only after the server uses the new clock.
func TestSetClockWaits(t *testing.T) {
	for _, moved := range []time.Duration{time.Hour, -time.Second} {
		c := &clock{old: 3, moved: moved}
		s := alone(movable{}, time.Second)
		s.admin = redis.NewClient(&redis.Options{})
		s.admin.AddHook(c)
		if err := s.world.Apply(faults.NodeClock{Node: "n1", By: faults.Span{Abs: moved}}); err != nil {
			t.Fatal(err)
		}
		if c.old != -1 {
			t.Errorf("by %v: asked until %d answers before the clock was set", moved, c.old)
		}
	}
}
