package main

import (
	"context"
	"errors"
	"io"

	"github.com/lockfault/lockfault/strategies"
)

// The classes of docs/leases.md, each a tag: what a lock of the class may show is
// in the table there.
const (
	classLease            = "lease"
	classValidity         = "validity"
	classTold             = "told"
	classWatchdog         = "watchdog"
	classWatchdogTold     = "watchdog-told"
	classReentrant        = "reentrant"
	classFencing          = "fencing"
	classQueue            = "queue"
	classReplicas         = "replicas"
	classForever          = "forever"
	classMajority         = "majority"
	classMajorityWatchdog = "majority-watchdog"
)

// sound returns the locks that do what they can.
func sound() []strategies.Strategy {
	var list []strategies.Strategy
	for _, group := range [][]strategies.Strategy{
		soundStrings(), soundShapes(), soundQueues(), soundClocks(), soundClients(), soundMajorities(), soundPublic(),
	} {
		list = append(list, group...)
	}
	return list
}

// steps are what a polling lock does on its server, each in one call. A value is
// an attempt's own: no two attempts, and no two clients, have the same.
type steps struct {
	// take makes one attempt. It returns ErrNotAcquired if the lock is taken. A
	// request that is sent twice takes the lock once.
	take func(ctx context.Context, value string) error
	// give returns ErrNotHeld if the lock isn't the value's.
	give func(ctx context.Context, value string) error
	// prolong sets the lease anew, and returns ErrNotHeld as give does.
	prolong func(ctx context.Context, value string) error
	// close gives up what the lock opened; nil if it opened nothing.
	close io.Closer
}

// stepped is a lock whose clients ask again until they have it.
type stepped struct {
	env   strategies.Env
	steps steps
	value string // of the latest hold, or of the latest attempt that may have begun one
	held  bool
}

func (l *stepped) Acquire(ctx context.Context) error {
	value := newValue(l.env)
	return l.note(value, poll(ctx, func() error { return l.steps.take(ctx, value) }))
}

func (l *stepped) TryAcquire(ctx context.Context) error {
	value := newValue(l.env)
	return l.note(value, l.steps.take(ctx, value))
}

// note keeps the value of an attempt that took the lock, or may have. A holder's
// own is kept whatever becomes of its further attempts.
func (l *stepped) note(value string, err error) error {
	if err == nil || !l.held && !errors.Is(err, strategies.ErrNotAcquired) {
		l.value = value
	}
	l.held = l.held || err == nil
	return err
}

func (l *stepped) Release(ctx context.Context) error {
	l.held = false
	return l.steps.give(ctx, l.value)
}

func (l *stepped) Close() error {
	if l.steps.close == nil {
		return nil
	}
	return l.steps.close.Close()
}

// prolonged is a polling lock that its holder can prolong.
type prolonged struct{ stepped }

func (l *prolonged) Extend(ctx context.Context) error { return l.steps.prolong(ctx, l.value) }

// define describes a polling lock on one primary.
func define(name, class, summary, source string, made func(strategies.Env) steps) strategies.Strategy {
	s := describe(name, class, summary, source, 1)
	s.New = func(env strategies.Env) (strategies.Lock, error) {
		if err := env.Check(name, 1); err != nil {
			return nil, err
		}
		return &stepped{env: env, steps: made(env)}, nil
	}
	return s
}

// defineProlonged is define for a lock whose steps can prolong it.
func defineProlonged(name, class, summary, source string, made func(strategies.Env) steps) strategies.Strategy {
	s := describe(name, class, summary, source, 1, strategies.TagExtending)
	s.New = func(env strategies.Env) (strategies.Lock, error) {
		if err := env.Check(name, 1); err != nil {
			return nil, err
		}
		return &prolonged{stepped{env: env, steps: made(env)}}, nil
	}
	return s
}

// describe is a strategy without its New.
func describe(name, class, summary, source string, nodes int, tags ...string) strategies.Strategy {
	place := strategies.TagSingle
	if nodes > 1 {
		place = strategies.TagMulti
	}
	return strategies.Strategy{
		Name: name, Summary: summary, Source: source, Nodes: nodes,
		Tags: append([]string{class, place}, tags...),
	}
}
