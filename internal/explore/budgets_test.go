package explore

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/lockfault/lockfault/checker"
	"github.com/lockfault/lockfault/internal/racetest"
	"github.com/lockfault/lockfault/scenarios"
	"github.com/lockfault/lockfault/strategies"
)

// TestSlowFindsWhatIsKnownByBudget checks what each budget finds on its own, and what a correct lock
// shows under it.
func TestSlowFindsWhatIsKnownByBudget(t *testing.T) {
	racetest.Skip(t)
	for _, c := range []struct {
		strategy string
		budget   BudgetKind
		want     string
	}{
		// A lease expires while its holder is paused, even a lease that is renewed.
		{"set-nx-px-lua", Pause, "overlap stale-write"},
		{"redisson", Pause, "overlap stale-write"},
		{"getset-timestamp", Pause, "foreign-release ghost overlap stale-write unreleasable"},
		// A lost request leaves a key without a lease.
		{"setnx-expire", LoseRequest, "stuck-lock"},
		{"set-nx-px-lua", LoseRequest, ""},
		{"fenced", LoseRequest, ""},
		{"set-nx-px-lua", Partition, "overlap stale-write"},
		// A caller that gives up between two commands also leaves a key without a lease.
		{"setnx-expire", Cancel, "stuck-lock"},
		{"set-nx-px-lua", Cancel, ""},
		{"fenced", Cancel, ""},
		// A restarted client finds a key that no client will ever remove.
		{"setnx-expire", ClientRestart, "stuck-lock"},
		{"set-nx-px-lua", ClientRestart, ""},
		{"fenced", ClientRestart, ""},
	} {
		r := found(t, c.strategy, Bound{Clients: 2, Rounds: 1, Budget: map[BudgetKind]int{c.budget: 1}})
		var got []string
		for _, a := range slices.Sorted(maps.Keys(anomalies(r))) {
			got = append(got, string(a))
		}
		if strings.Join(got, " ") != c.want || !r.Exhausted {
			t.Errorf("%s --%s 1: found %v, exhausted %t (%s, %v), want %q", c.strategy, c.budget, got, r.Exhausted, r.Cut, r.Failures, c.want)
		}
	}
}

// TestMisfortunesEnd checks that a restarted client has one more round, and that a paused or
// partitioned client stays so until a transition ends the fault.
func TestMisfortunesEnd(t *testing.T) {
	fenced, _ := strategies.Builtin().Lookup("fenced")
	for budget, c := range map[BudgetKind]struct{ begins, ends string }{
		Pause:         {"A pause\nwait 1.107ttl\n", "A resume\n"},
		Partition:     {"partition A\nwait 1.107ttl\n", "heal A\n"},
		LoseRequest:   {"partition A\npass A once\nheal A\n", ""},
		ClientRestart: {"A crash\nA restart\n", "begin A try\n"},
	} {
		b := Bound{WithoutTables: true, Clients: 1, Rounds: 1, Budget: map[BudgetKind]int{budget: 1}, Nodes: 1, TTL: scenarios.Defaults().TTL}
		player := &reader{stage: stage{t: t, strategy: fenced}}
		r, err := Search(t.Context(), b, player, nil)
		if err != nil || !r.Exhausted {
			t.Fatal(budget, err, r.Cut, r.Failures)
		}
		befell, ended := 0, 0
		for _, script := range player.scripts {
			_, after, ok := strings.Cut(script, c.begins)
			if !ok {
				continue
			}
			befell++
			if strings.Contains(after, c.ends) {
				ended++
			}
			if strings.Contains(after, c.begins) {
				t.Errorf("--%s 1: it befalls A twice:\n%s", budget, script)
			}
			if strings.Contains(script, "acquire within") && !strings.Contains(after, c.ends) {
				t.Errorf("--%s 1: all are done, and it did not end:\n%s", budget, script)
			}
		}
		if befell == 0 || ended == 0 {
			t.Errorf("--%s 1: %d scripts have %q, %d go on with %q", budget, befell, c.begins, ended, c.ends)
		}
	}
}

// TestFindsWhatIsKnownOfHolders checks that an extend without an ownership check extends another
// client's key, and that a holder does each nested operation once.
func TestFindsWhatIsKnownOfHolders(t *testing.T) {
	racetest.Skip(t)
	blind := strategies.Strategy{
		Name: "blind", Summary: "SET NX PX, prolonged by PEXPIRE", Source: "this test", Tags: []string{strategies.TagSingle, strategies.TagExtending},
		New: func(env strategies.Env) (strategies.Lock, error) { return blindLock{bareLock{env}}, nil },
	}
	r := on(t, blind, Bound{Clients: 2, Rounds: 1, Extend: true, Budget: map[BudgetKind]int{Advance: 1, Tick: 1}, Moves: 8})
	if _, ok := anomalies(r)[checker.ForeignExtend]; !ok {
		t.Errorf("an extend that doesn't look: found %v, want foreign-extend", anomalies(r))
	}
	// A second attempt overwrites the recorded owner value, so the release fails.
	forgetful := strategies.Strategy{
		Name: "forgetful", Summary: "SETNX of a new number each time", Source: "this test", Tags: []string{strategies.TagSingle},
		New: func(env strategies.Env) (strategies.Lock, error) { return &forgetfulLock{bareLock: bareLock{env}}, nil },
	}
	for reenter, want := range map[bool]bool{true: true, false: false} {
		r := on(t, forgetful, Bound{Clients: 2, Rounds: 1, Reenter: reenter})
		if _, ok := anomalies(r)[checker.StuckLock]; ok != want || !r.Exhausted {
			t.Errorf("reenter %t: found %v, want stuck-lock %t", reenter, anomalies(r), want)
		}
	}
	fenced, _ := strategies.Builtin().Lookup("fenced")
	player := &reader{stage: stage{t: t, strategy: fenced}}
	r, err := Search(t.Context(), Bound{WithoutTables: true, Clients: 1, Rounds: 2, Extend: true, Reenter: true, Nodes: 1, TTL: scenarios.Defaults().TTL}, player, nil)
	// The lock does not admit its own holder again, and has no other anomaly.
	if _, ok := anomalies(r)[checker.SelfDeadlock]; err != nil || len(r.Findings) != 1 || !ok || !r.Exhausted {
		t.Errorf("fenced: found %v, exhausted %t, %v %v", anomalies(r), r.Exhausted, err, r.Failures)
	}
	most := 0
	for _, script := range player.scripts {
		most = max(most, strings.Count(script, "begin A extend"))
	}
	if most != 2 {
		t.Errorf("A extends %d times in two rounds", most)
	}
}

// blindLock extends any key that it finds.
type blindLock struct{ bareLock }

func (l blindLock) Acquire(ctx context.Context) error {
	won, err := l.env.Nodes[0].SetNX(ctx, l.env.Key, l.env.Owner, l.env.TTL).Result()
	if err == nil && !won {
		return strategies.ErrNotAcquired
	}
	return err
}

func (l blindLock) TryAcquire(ctx context.Context) error { return l.Acquire(ctx) }

func (l blindLock) Extend(ctx context.Context) error {
	return l.env.Nodes[0].PExpire(ctx, l.env.Key, l.env.TTL).Err()
}

// forgetfulLock keeps only the owner value of its latest attempt.
type forgetfulLock struct {
	bareLock
	tries int
}

func (l *forgetfulLock) value() string { return fmt.Sprint(l.env.Owner, " ", l.tries) }

func (l *forgetfulLock) Acquire(ctx context.Context) error {
	l.tries++
	won, err := l.env.Nodes[0].SetNX(ctx, l.env.Key, l.value(), 0).Result()
	if err == nil && !won {
		return strategies.ErrNotAcquired
	}
	return err
}

func (l *forgetfulLock) TryAcquire(ctx context.Context) error { return l.Acquire(ctx) }

func (l *forgetfulLock) Release(ctx context.Context) error {
	if own, err := l.env.Nodes[0].Get(ctx, l.env.Key).Result(); err != nil || own != l.value() {
		return strategies.ErrNotHeld
	}
	return l.bareLock.Release(ctx)
}

// A reader records the scripts.
type reader struct {
	stage
	scripts []string
}

func (r *reader) Play(ctx context.Context, trials []Trial) ([]Outcome, error) {
	for _, trial := range trials {
		r.scripts = append(r.scripts, trial.Script)
	}
	return r.stage.Play(ctx, trials)
}

// TestEveryFaultIsTold checks that faults have distinct names and descriptions.
func TestEveryFaultIsTold(t *testing.T) {
	said := map[string]BudgetKind{}
	for _, f := range BudgetKinds() {
		text := f.About()
		if other, ok := said[text]; ok || text == "" {
			t.Errorf("%s and %s say %q", f, other, text)
		}
		said[text] = f
	}
	if len(said) != len(BudgetKinds()) {
		t.Error(fmt.Sprint(BudgetKinds()))
	}
}

// TestFaultsComeWhileSomebodyWaits checks that a fault may happen while a client waits only for
// time, also after a part of the wait.
func TestFaultsComeWhileSomebodyWaits(t *testing.T) {
	patient := strategies.Strategy{
		Name: "patient", Summary: "looks half a lease later whether the lock is still its own", Source: "this test", Tags: []string{strategies.TagSingle},
		New: func(env strategies.Env) (strategies.Lock, error) { return patientLock{bareLock{env}}, nil },
	}
	b := Bound{Clients: 1, Rounds: 1, Nodes: 1, TTL: 30 * time.Second, Budget: map[BudgetKind]int{Flush: 1}, WithoutTables: true}
	player := &reader{stage: stage{t: t, strategy: patient}}
	r, err := Search(t.Context(), b, player, nil)
	if err != nil || !r.Exhausted {
		t.Fatal(err, r.Cut, r.Failures)
	}
	if !slices.ContainsFunc(player.scripts, func(s string) bool { return strings.Contains(s, "wait 0.1ttl\nwait 0.1ttl\nn1 flush\n") }) {
		t.Errorf("of %d scripts none has the flush behind two waits", len(player.scripts))
	}
}

type patientLock struct{ bareLock }

func (l patientLock) TryAcquire(ctx context.Context) error {
	if err := l.Acquire(ctx); err != nil {
		return err
	}
	time.Sleep(l.env.TTL / 2)
	if n, err := l.env.Nodes[0].Exists(ctx, l.env.Key).Result(); err != nil || n == 0 {
		return strategies.ErrNotAcquired
	}
	return nil
}
