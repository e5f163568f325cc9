package explore

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/lockfault/lockfault/internal/harness"
	"github.com/lockfault/lockfault/internal/racetest"
	"github.com/lockfault/lockfault/scenarios"
	"github.com/lockfault/lockfault/strategies"
	"github.com/lockfault/lockfault/strategies/all"
)

var playAll = flag.Bool("all", false, "all scripts and searches, instead of a random selection (default false)")

// A keeping plays each trial in a RunCache and from its beginning, and reports where the two
// differ.
type keeping struct {
	stage
	house   RunCache
	differs []string
	wentOn  int
}

func (k *keeping) Play(ctx context.Context, trials []Trial) ([]Outcome, error) {
	looks, err := k.stage.Play(ctx, trials)
	for i, trial := range trials {
		script, err := scenarios.Parse("found.txt", []byte(trial.Script))
		if err != nil {
			return nil, err
		}
		before := k.house.many
		got := k.house.Play(k.t, harness.Cell{Strategy: k.strategy, Script: script, Seed: 1}, trial)
		if k.house.many == before && !trial.Last || k.house.many < before {
			k.wentOn++
		}
		if !reflect.DeepEqual(got, looks[i]) {
			k.differs = append(k.differs, fmt.Sprintf("%s\ncame to\n%+v\nand from its beginning to\n%+v", trial.Script, got, looks[i]))
		}
	}
	return looks, err
}

// A lodger plays scripts in a RunCache in this process.
type lodger struct {
	stage
	house RunCache
}

func (l *lodger) Play(ctx context.Context, trials []Trial) ([]Outcome, error) {
	looks := make([]Outcome, len(trials))
	for i, trial := range trials {
		script, err := scenarios.Parse("found.txt", []byte(trial.Script))
		if err != nil {
			return nil, err
		}
		looks[i] = l.house.Play(l.t, harness.Cell{Strategy: l.strategy, Script: script, Seed: 1}, trial)
	}
	return looks, ctx.Err()
}

func (l *lodger) End(context.Context) (string, error) { return l.house.End(), nil }

// everything is a bound with one fault of each kind that a strategy can have.
func everything(s strategies.Strategy) Bound {
	b := Bound{Clients: 2, Rounds: 2, Nodes: max(1, s.Nodes), TTL: 30 * time.Second, Budget: map[BudgetKind]int{}, WithoutTables: true}
	for _, f := range BudgetKinds() {
		b.Budget[f] = 1
	}
	b.Replicas = 1
	return b
}

// TestSlowGoesOnAsIfPlayedAtOnce checks, for every lock, that a script continued from another one has
// the outcome of a script played at once: for a random selection of scripts, or with -all for
// all.
func TestSlowGoesOnAsIfPlayedAtOnce(t *testing.T) {
	racetest.Skip(t)
	locks := slices.DeleteFunc(all.Registry().All(), func(s strategies.Strategy) bool { return s.Program != nil || s.HistoryVaries != "" })
	if !*playAll {
		const some = 5
		rand.Shuffle(len(locks), func(i, j int) { locks[i], locks[j] = locks[j], locks[i] })
		locks = locks[:some]
	}
	for _, s := range locks {
		t.Run(s.Name, func(t *testing.T) {
			k := &keeping{stage: stage{t: t, strategy: s}}
			r, err := Draw(t.Context(), everything(s), Random{Method: Walk, Schedules: 4, Seed: 7}, k, nil)
			if err != nil {
				t.Fatal(err)
			}
			if k.wentOn < k.played/2 || r.Schedules == 0 {
				t.Errorf("only %d of %d scripts went on from another", k.wentOn, k.played)
			}
			// Many scripts begin anew here, with servers that others have left.
			b := everything(s)
			b.States = 80
			if _, err := Search(t.Context(), b, k, nil); err != nil {
				t.Fatal(err)
			}
			if left := k.house.End(); left != "" {
				t.Error(left)
			}
			if len(k.differs) > 0 {
				t.Errorf("%d scripts of %d differ, of which one is\n%s", len(k.differs), k.played, k.differs[0])
			}
		})
	}
}

// A forgetful lock is SET NX and DEL with a defect.
type forgetful struct {
	env  strategies.Env
	with func(ctx context.Context, env strategies.Env)
}

func (l *forgetful) Acquire(ctx context.Context) error { return l.TryAcquire(ctx) }

func (l *forgetful) TryAcquire(ctx context.Context) error {
	won, err := l.env.Nodes[0].SetNX(ctx, l.env.Key, l.env.Owner, l.env.TTL).Result()
	if err == nil && !won {
		err = strategies.ErrNotAcquired
	}
	l.with(ctx, l.env)
	return err
}

func (l *forgetful) Release(ctx context.Context) error {
	return l.env.Nodes[0].Del(ctx, l.env.Key).Err()
}

func forgetfulWith(with func(ctx context.Context, env strategies.Env)) strategies.Strategy {
	return strategies.Strategy{
		Name: "forgetful", Summary: "SET NX, DEL", Source: "this test", Tags: []string{strategies.TagSingle},
		New: func(env strategies.Env) (strategies.Lock, error) { return &forgetful{env, with}, nil },
	}
}

// TestGoesOnSeesWhatRunsShare checks that the comparison can fail: it detects state that runs
// share.
func TestGoesOnSeesWhatRunsShare(t *testing.T) {
	tries := 0
	shared := forgetfulWith(func(ctx context.Context, env strategies.Env) {
		if tries++; tries%7 == 0 {
			env.Nodes[0].Get(ctx, env.Key)
		}
	})
	k := &keeping{stage: stage{t: t, strategy: shared}}
	b := Bound{Clients: 2, Rounds: 1, Nodes: 1, TTL: 30 * time.Second, WithoutTables: true}
	if _, err := Draw(t.Context(), b, Random{Method: Walk, Schedules: 4, Seed: 1}, k, nil); err != nil {
		t.Fatal(err)
	}
	k.house.End()
	if len(k.differs) == 0 {
		t.Errorf("%d scripts were played, and none differs", k.played)
	}
}

// endless is a lock that never closes.
type endless struct{ strategies.Lock }

func (endless) Close() error { select {} }

// TestLeaksOfKeptRunsAreSeen checks that a goroutine that outlives its client is named, whether runs
// are kept or not, and that the search goes on.
func TestLeaksOfKeptRunsAreSeen(t *testing.T) {
	leaks := forgetfulWith(func(_ context.Context, env strategies.Env) {
		if env.Key == harness.LockKey {
			go func() { select {} }()
		}
	})
	b := Bound{Clients: 2, Rounds: 1, Nodes: 1, TTL: 30 * time.Second}
	want, err := Search(t.Context(), b, &stage{t: t, strategy: leaks}, nil)
	if err != nil || len(want.Failures) > 0 || !strings.Contains(want.Leak, "runcache_test.go") {
		t.Fatalf("played from the beginning: %d failures, leak %q, %v", len(want.Failures), want.Leak, err)
	}
	l := &lodger{stage: stage{t: t, strategy: leaks}}
	got, err := Search(t.Context(), b, l, nil)
	l.house.End()
	if err != nil || got.States != want.States || got.Runs != want.Runs || got.Leak != want.Leak {
		t.Errorf("%d states, %d runs, leak %q, %v; want %d, %d, %q", got.States, got.Runs, got.Leak, err, want.States, want.Runs, want.Leak)
	}
}

// TestWhatKeptRunsLeaveIsSeen checks that a run that leaves something behind at its end, long after
// its outcome was used, is detected: everything is then played from its beginning, where the script
// responsible is known.
func TestWhatKeptRunsLeaveIsSeen(t *testing.T) {
	leaves := forgetfulWith(func(context.Context, strategies.Env) {})
	made := leaves.New
	leaves.New = func(env strategies.Env) (strategies.Lock, error) {
		l, err := made(env)
		if env.Key != harness.LockKey {
			return l, err
		}
		return endless{l}, err
	}
	b := Bound{Clients: 2, Rounds: 1, Nodes: 1, TTL: 30 * time.Second}
	want, err := Search(t.Context(), b, &stage{t: t, strategy: leaves}, nil)
	if err != nil || len(want.Failures) == 0 {
		t.Fatalf("played from the beginning: %d failures, %v", len(want.Failures), err)
	}
	l := &lodger{stage: stage{t: t, strategy: leaves}}
	got, err := Search(t.Context(), b, l, nil)
	l.house.End()
	if err != nil || got.States != want.States || got.Runs != want.Runs || len(got.Failures) != len(want.Failures) {
		t.Errorf("%d states, %d runs, %d failures, %v; want %d, %d and %d", got.States, got.Runs, len(got.Failures), err, want.States, want.Runs, len(want.Failures))
	}
}
