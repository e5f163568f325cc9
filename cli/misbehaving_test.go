package cli_test

import (
	"context"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/lockfault/lockfault/strategies"
)

// misbehaving returns strategies that do to their process what no lock should.
// Their acquire does it, but not while the harness warms them up: that is not
// when a lock under test misbehaves.
func misbehaving() []strategies.Strategy {
	return []strategies.Strategy{
		misbehave("bad-panic", func(context.Context) error {
			go explode()
			time.Sleep(time.Hour)
			return nil
		}),
		misbehave("bad-mutex", func(context.Context) error {
			var mu sync.Mutex
			mu.Lock()
			lockAgain(&mu)
			return nil
		}),
		misbehave("bad-spin", func(context.Context) error {
			spinForEver()
			return nil
		}),
		misbehave("bad-return", func(context.Context) error {
			waitForEver()
			return nil
		}),
		misbehave("bad-context", func(context.Context) error {
			sleepForEver()
			return nil
		}),
		misbehave("bad-leak", func(context.Context) error {
			go leakForEver()
			return nil
		}),
		held(),
	}
}

// heldBy is the environment variable that names a file as long as which exists
// the strategy held goes on acquiring.
const heldBy = "LOCKFAULT_TEST_HELD_BY"

func held() strategies.Strategy {
	s := misbehave("held", func(context.Context) error {
		for {
			if _, err := os.Stat(os.Getenv(heldBy)); err != nil {
				return nil
			}
		}
	})
	s.Tags = nil
	return s
}

func explode() { panic("out of cheese") }

func lockAgain(mu *sync.Mutex) { mu.Lock() }

func spinForEver() {
	//lint:ignore SA5002 spinning is what it is for
	for {
	}
}

func waitForEver() { select {} }

func leakForEver() { select {} }

func sleepForEver() {
	for {
		time.Sleep(time.Second)
	}
}

func misbehave(name string, acquire func(context.Context) error) strategies.Strategy {
	return strategies.Strategy{
		Name:    name,
		Summary: "does not behave",
		Source:  "nowhere",
		Tags:    []string{"bad"},
		New: func(env strategies.Env) (strategies.Lock, error) {
			if strings.Contains(env.Key, "warm-up") {
				return badLock{func(context.Context) error { return nil }}, nil
			}
			return badLock{acquire}, nil
		},
	}
}

type badLock struct {
	acquire func(context.Context) error
}

func (l badLock) Acquire(ctx context.Context) error { return l.acquire(ctx) }

func (l badLock) Release(context.Context) error { return nil }
