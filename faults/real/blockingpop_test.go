package real_test

import (
	"slices"
	"testing"
	"time"

	"github.com/lockfault/lockfault/checker"
	"github.com/lockfault/lockfault/faults/real"
	"github.com/lockfault/lockfault/faults/worldtest"
)

// TestPushedByOneOfTwo checks that no client is credited with a push, or with ownership of the key,
// if two clients may have pushed what a third one waited for.
func TestPushedByOneOfTwo(t *testing.T) {
	t.Parallel()
	s := newStage(t, real.Config{}, "client")
	worldtest.Play(t, worldtest.World{
		World: s.World, Dial: s.dial, Moment: 30 * time.Millisecond,
		Events: func() []checker.Event { return slices.Clone(s.events) },
	}, worldtest.Story{
		Steps: []worldtest.Step{
			worldtest.Send("A", "BLPOP lock 0"), worldtest.AwaitEvent("A > n1/0 BLPOP lock 0"),
			worldtest.Send("B", "EVAL return_1 1 lock"), worldtest.Hears("B", ":1"),
			worldtest.Send("C", "EVAL return_redis.call('rpush',KEYS[1],'a-token') 1 lock"), worldtest.Hears("C", ":1"),
			worldtest.Hears("A", "*2 $4 lock $7 a-token"),
		},
		Kinds: []checker.Kind{checker.State},
		Events: `
			n1/0 [a-token] by command
			n1/0 gone by command A`,
	})
	first := slices.IndexFunc(s.events, func(e checker.Event) bool { return e.Kind == checker.State })
	if first >= 0 && s.events[first].Owner != "" {
		t.Errorf("the token is %s's", s.events[first].Owner)
	}
}
