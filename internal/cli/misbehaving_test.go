package cli_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"sync/atomic"
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
		parent("parent", nil),
		parent("parent-spinning", spinForEver),
		keeper(),
		misbehave("evil", func(context.Context) error {
			fmt.Fprintln(os.Stderr, evilText)
			panic(evilText)
		}),
		misbehave("evil-error", func(context.Context) error { return errors.New(evilText) }),
		chatty("chatty", nil),
		chatty("chatty-failing", errors.New("nothing to be had")),
	}
}

// parent leaves a process behind that nobody waits for, and that ignores what asks it
// politely to end.
func parent(name string, then func()) strategies.Strategy {
	s := misbehave(name, func(context.Context) error {
		err := exec.Command("sh", "-c", "trap '' TERM HUP INT; sleep 600").Start()
		if err == nil && then != nil {
			then()
		}
		return err
	})
	s.Tags = nil
	return s
}

// evilText acts on a terminal that shows it.
const evilText = "\x1b[31mred\x1b]0;pwn\x07\u009b2J \u202eevil\u2066 \x00\r\n::error::x \xff"

// acquired counts what all clients of a process have acquired: what no lock should.
var acquired atomic.Int64

// keeper can be acquired once in a process.
func keeper() strategies.Strategy {
	s := misbehave("keeper", func(context.Context) error {
		if acquired.Add(1) > 1 {
			return errors.New("this process has acquired before")
		}
		return nil
	})
	s.Tags = nil
	return s
}

// logs is where a logger writes that was made when its package was initialised.
var logs = os.Stdout

// chatty prints on standard output, and can be made only if it gets no error.
func chatty(name string, err error) strategies.Strategy {
	s := misbehave(name, func(context.Context) error { return nil })
	s.Tags = nil
	made := s.New
	s.New = func(env strategies.Env) (strategies.Lock, error) {
		for i := range 20 {
			fmt.Fprintf(logs, "%s says line %d\n", name, i+1)
		}
		if err != nil {
			return nil, err
		}
		return made(env)
	}
	return s
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

// heldLater is held, but only from the eleventh time on that it is acquired, in all processes: each writes a byte to a file
// whose name is longer than that of the other by .count.
func heldLater() strategies.Strategy {
	held := held()
	s := misbehave("held-later", func(ctx context.Context) error {
		if os.Getenv(heldBy) == "" {
			return nil
		}
		f, err := os.OpenFile(os.Getenv(heldBy)+".count", os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
		if err != nil {
			return err
		}
		defer f.Close()
		if _, err := f.WriteString("."); err != nil {
			return err
		}
		if info, err := f.Stat(); err != nil || info.Size() <= 10 {
			return err
		}
		lock, err := held.New(strategies.Env{})
		if err != nil {
			return err
		}
		return lock.Acquire(ctx)
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
