package locktest_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"regexp"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lockfault/lockfault/locktest"
)

// What users write, most of which fails. TestCases runs each in a process of its own and
// looks at what that prints; go test alone skips nothing here, for it doesn't see them.

func cases() []testing.InternalTest {
	return []testing.InternalTest{
		{Name: "TestPromised", F: func(t *testing.T) {
			locktest.Run(t, sound(), locktest.Only("gc-pause-holding", "contention"), locktest.Survives("gc-pause-holding"))
		}},
		{Name: "TestNotExcused", F: func(t *testing.T) {
			locktest.Run(t, careless(), locktest.Only("pause-in-release"))
		}},
		{Name: "TestAcceptsLess", F: func(t *testing.T) {
			locktest.Run(t, sound(), locktest.Only("gc-pause-holding"), locktest.Accepts("gc-pause-holding", "stale-write"))
		}},
		{Name: "TestSurvivesWhatDoesNotApply", F: func(t *testing.T) {
			locktest.Run(t, sound(), locktest.Only("quorum-clock-jump"), locktest.Survives("quorum-clock-jump"))
		}},
		{Name: "TestNoSuchScenario", F: func(t *testing.T) { locktest.Run(t, sound(), locktest.Survives("contentoin")) }},
		{Name: "TestNoSuchAnomaly", F: func(t *testing.T) { locktest.Run(t, sound(), locktest.Accepts("contention", "overlaps")) }},
		{Name: "TestTwice", F: func(t *testing.T) {
			locktest.Run(t, sound(), locktest.Survives("contention"), locktest.Accepts("contention", "overlap"))
		}},
		{Name: "TestNoNew", F: func(t *testing.T) { locktest.Run(t, locktest.Subject{}) }},
		{Name: "TestNewFails", F: func(t *testing.T) {
			locktest.Run(t, locktest.Subject{New: func(locktest.Env) (locktest.Lock, error) { return nil, errors.New("no licence") }})
		}},
		{Name: "TestRealDial", F: func(t *testing.T) {
			client := redis.NewClient(&redis.Options{Addr: "127.0.0.1:1", MaxRetries: -1})
			defer client.Close()
			locktest.Run(t, locktest.Subject{New: func(env locktest.Env) (locktest.Lock, error) {
				env.Nodes[0] = client
				return newSimple(env), nil
			}})
		}},
		{Name: "TestHostname", F: func(t *testing.T) {
			locktest.Run(t, locktest.Subject{New: func(env locktest.Env) (locktest.Lock, error) {
				env.Nodes[0] = redis.NewClient(&redis.Options{Addr: "redis.invalid:6379", MaxRetries: -1})
				return newSimple(env), nil
			}})
		}},
		{Name: "TestInABubble", F: func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { locktest.Run(t, sound()) })
		}},
		{Name: "TestSleepsUnderMutex", F: func(t *testing.T) {
			locktest.Run(t, locktest.Subject{New: func(env locktest.Env) (locktest.Lock, error) {
				l := newSimple(env)
				l.acquire = func(context.Context) error {
					var mu sync.Mutex
					mu.Lock()
					go func() {
						time.Sleep(time.Hour)
						mu.Unlock()
					}()
					waitForIt(&mu)
					return nil
				}
				return l, nil
			}})
		}},
		{Name: "TestComputes", F: func(t *testing.T) {
			locktest.Run(t, locktest.Subject{New: func(env locktest.Env) (locktest.Lock, error) {
				l := newSimple(env)
				l.acquire = func(context.Context) error {
					for computing.Load() {
					}
					return nil
				}
				return l, nil
			}})
		}},
		{Name: "TestLeaks", F: func(t *testing.T) {
			locktest.Run(t, locktest.Subject{New: func(env locktest.Env) (locktest.Lock, error) {
				l := newSimple(env)
				l.acquire = func(context.Context) error {
					go leaveBehind()
					return nil
				}
				return l, nil
			}})
		}},
		{Name: "TestIgnoresContext", F: func(t *testing.T) {
			locktest.Run(t, locktest.Subject{New: func(env locktest.Env) (locktest.Lock, error) {
				l := newSimple(env)
				l.acquire = func(context.Context) error {
					for !env.Nodes[0].SetNX(context.Background(), env.Key+":mine", env.Owner, 0).Val() {
						time.Sleep(time.Second)
					}
					return nil
				}
				return l, nil
			}}, locktest.Only("contention"))
		}},
		{Name: "TestDeaf", F: func(t *testing.T) {
			locktest.Run(t, locktest.Subject{New: func(env locktest.Env) (locktest.Lock, error) {
				l := newSimple(env)
				return locktest.Funcs{Unlock: l.Release, Lock: func(context.Context) error { return l.Acquire(context.Background()) }}, nil
			}}, locktest.Only("contention", "client-clock-skew"))
		}},
		{Name: "TestTwoSearches", F: func(t *testing.T) {
			once := locktest.Search{Faults: map[locktest.Fault]int{"crash": 1}}
			locktest.Explore(t, quick(), once)
			locktest.Explore(t, quick(), once)
		}},
		{Name: "TestPanics", F: func(t *testing.T) {
			locktest.Run(t, locktest.Subject{New: func(env locktest.Env) (locktest.Lock, error) {
				l := newSimple(env)
				l.release = func(context.Context) error { panic("not written yet") }
				return l, nil
			}})
		}},
		{Name: "TestPoolsTimers", F: func(t *testing.T) {
			var mu sync.Mutex
			var pooled []*time.Timer
			locktest.Run(t, locktest.Subject{New: func(env locktest.Env) (locktest.Lock, error) {
				l := newSimple(env)
				l.acquire = func(context.Context) error {
					timer := time.NewTimer(time.Hour)
					mu.Lock()
					if last := len(pooled) - 1; last >= 0 {
						timer, pooled = pooled[last], pooled[:last]
					}
					mu.Unlock()
					timer.Reset(time.Millisecond)
					<-timer.C
					mu.Lock()
					defer mu.Unlock()
					pooled = append(pooled, timer)
					return nil
				}
				return l, nil
			}}, locktest.Only("contention", "flush"))
		}},
		{Name: "TestPackageState", F: func(t *testing.T) {
			made := 0
			locktest.Run(t, locktest.Subject{New: func(env locktest.Env) (locktest.Lock, error) {
				made++
				env.TTL += time.Duration(made) * time.Millisecond
				return newSimple(env), nil
			}}, locktest.Only("contention", "flush"))
		}},
		{Name: "TestAccept", F: func(t *testing.T) {
			locktest.Run(t, careless(), locktest.Only("pause-in-release", "contention"))
		}},
		{Name: "TestExplore", F: func(t *testing.T) {
			locktest.Explore(t, careless(), locktest.Search{Faults: map[locktest.Fault]int{"advance": 1}, Accepts: []string{"overlap", "stale-write"}})
		}},
		{Name: "TestExploreSound", F: func(t *testing.T) {
			locktest.Explore(t, quick(), locktest.Search{Clients: 2, Rounds: 2, Exhaust: true})
		}},
		{Name: "TestExploreNoFault", F: func(t *testing.T) {
			locktest.Explore(t, sound(), locktest.Search{Faults: map[locktest.Fault]int{"advanse": 1}})
		}},
		{Name: "TestKinds", F: func(t *testing.T) {
			for _, kind := range []struct {
				name string
				locktest.Subject
			}{
				{"renewing", locktest.Subject{New: func(env locktest.Env) (locktest.Lock, error) { return &renewing{simple: newSimple(env)}, nil }}},
				{"quorum", locktest.Subject{Nodes: 5, New: func(env locktest.Env) (locktest.Lock, error) { return majority{env}, nil }}},
				{"single", sound()},
			} {
				t.Run(kind.name, func(t *testing.T) { locktest.Run(t, kind.Subject, locktest.Only("contention")) })
			}
		}},
		{Name: "TestShowsLess", F: func(t *testing.T) {
			locktest.Run(t, sound(), locktest.Only("contention"), locktest.Accepts("contention", "overlap"))
		}},
		{Name: "TestGrantsLess", F: func(t *testing.T) {
			locktest.Run(t, locktest.Subject{New: func(env locktest.Env) (locktest.Lock, error) {
				l := newSimple(env)
				if strings.HasPrefix(env.Owner, "B") && !strings.Contains(env.Key, "warm-up") {
					l.acquire = func(context.Context) error { return locktest.ErrNotAcquired }
				}
				return l, nil
			}}, locktest.Only("contention"), locktest.Accepts("contention", "overlap", "unavailable"))
		}},
		{Name: "TestRefused", F: func(t *testing.T) {
			locktest.Run(t, locktest.Subject{Refused: []error{errTaken}, New: func(env locktest.Env) (locktest.Lock, error) {
				l := newSimple(env)
				return locktest.Funcs{Lock: func(ctx context.Context) error {
					if err := l.Acquire(ctx); errors.Is(err, locktest.ErrNotAcquired) {
						return fmt.Errorf("lock: %w", errTaken)
					} else {
						return err
					}
				}, Unlock: l.Release}, nil
			}})
		}},
		{Name: "TestTwiceInOne", F: func(t *testing.T) {
			locktest.Run(t, sound(), locktest.Only("contention"))
			locktest.Run(t, careless(), locktest.Only("contention"))
		}},
		{Name: "TestLeftOut", F: func(t *testing.T) {
			locktest.Run(t, sound(), locktest.Only("contention"), locktest.Survives("flush"))
		}},
		{Name: "TestNothing", F: func(t *testing.T) { locktest.Run(t, sound(), locktest.Only()) }},
		{Name: "TestNoSuchTag", F: func(t *testing.T) {
			s := sound()
			s.Tags = []string{"quorm"}
			locktest.Run(t, s)
		}},
		{Name: "TestOtherTag", F: func(t *testing.T) {
			s := sound()
			s.Tags = []string{"multi"}
			locktest.Run(t, s)
		}},
		{Name: "TestNoLease", F: func(t *testing.T) {
			s := sound()
			s.TTL = -1
			locktest.Run(t, s)
		}},
		{Name: "TestNewEndsItsGoroutine", F: func(t *testing.T) {
			locktest.Run(t, locktest.Subject{New: func(locktest.Env) (locktest.Lock, error) {
				runtime.Goexit()
				return nil, nil
			}})
		}},
		{Name: "TestStandsStillLater", F: func(t *testing.T) {
			locktest.Run(t, locktest.Subject{New: func(env locktest.Env) (locktest.Lock, error) {
				l := newSimple(env)
				l.release = func(ctx context.Context) error {
					if env.Nodes[0].Get(ctx, env.Key).Val() != env.Owner {
						var mu sync.Mutex
						mu.Lock()
						waitForIt(&mu)
					}
					return deleteIfMine.Run(ctx, env.Nodes[0], []string{env.Key}, env.Owner).Err()
				}
				return l, nil
			}}, locktest.Only("late-release", "contention", "flush"))
		}},
		{Name: "TestHints", F: func(t *testing.T) {
			locktest.Run(t, locktest.Subject{New: func(env locktest.Env) (locktest.Lock, error) {
				env.TTL /= 3
				l := newSimple(env)
				return locktest.Funcs{Unlock: l.Release, Lock: func(ctx context.Context) error {
					if err := l.Acquire(ctx); errors.Is(err, locktest.ErrNotAcquired) {
						return errTaken
					} else {
						return err
					}
				}}, nil
			}}, locktest.Only("ghost-retry", "delayed-acquire-reply"), locktest.Survives("*"))
		}},
		{Name: "Test[odd]'s", F: func(t *testing.T) { locktest.Run(t, careless(), locktest.Only("pause-in-release")) }},
		{Name: "TestSome", F: func(t *testing.T) {
			locktest.Run(t, sound(), locktest.Only("contention", "failover-*", "flush", "quorum-clock-jump"))
		}},
	}
}

var computing atomic.Bool

func waitForIt(mu *sync.Mutex) { mu.Lock() }

func leaveBehind() { select {} }

// TestMain lets this program be one of the cases.
func TestMain(m *testing.M) {
	locktest.Flags(flag.CommandLine)
	computing.Store(true)
	if os.Getenv("LOCKTEST_CASES") == "" {
		os.Exit(m.Run())
	}
	testing.Main(regexp.MatchString, cases(), nil, nil)
}
