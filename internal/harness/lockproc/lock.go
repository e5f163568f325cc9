package lockproc

import (
	"context"
	"fmt"
	"time"

	"github.com/lockfault/lockfault/internal/harness/client"
	"github.com/lockfault/lockfault/strategies"
)

// Strategy returns a strategy whose locks the program implements, for the one client of this setup.
// Operations last until the program answers or life is done: the simple protocol cannot tell a
// program that a context has ended.
func (t *Talk) Strategy(life context.Context, setup client.Setup, nodes []Node) strategies.Strategy {
	p := &program{talk: t, life: life}
	return strategies.Strategy{Name: setup.Strategy, New: func(env strategies.Env) (strategies.Lock, error) {
		if !p.begun {
			a, err := t.Ask(life, Request{Do: Init, Key: env.Key, Start: StartOf(setup, env.Owner, env.Thread, nodes)})
			if err != nil {
				return nil, err
			}
			if a.Answer != OK {
				return nil, fmt.Errorf("it answered %q to init: %w", a.Answer, a.reason())
			}
			p.begun, p.fenced = true, a.Fenced
		}
		l := &lock{of: p, key: env.Key}
		if p.fenced {
			return &fenced{l}, nil
		}
		return l, nil
	}}
}

// program is a program that acts as one client.
type program struct {
	talk          *Talk
	life          context.Context
	begun, fenced bool
}

// lock is one of a program's locks.
type lock struct {
	of    *program
	key   string
	token int64
}

// fenced is a lock whose acquires return tokens.
type fenced struct{ *lock }

func (l *fenced) Token() int64 { return l.token }

func (l *lock) Acquire(ctx context.Context) error    { return l.take(ctx, Acquire) }
func (l *lock) TryAcquire(ctx context.Context) error { return l.take(ctx, Try) }
func (l *lock) Release(ctx context.Context) error    { return l.ask(ctx, Release, strategies.ErrNotHeld) }
func (l *lock) Extend(ctx context.Context) error     { return l.ask(ctx, Extend, strategies.ErrNotHeld) }

func (l *lock) take(ctx context.Context, do Do) error {
	return l.ask(ctx, do, strategies.ErrNotAcquired)
}

// ask sends a request and converts its answer. A failed answer means no effect, and ask returns
// failure with the program's reason. An error answer means that the outcome is unknown.
func (l *lock) ask(ctx context.Context, do Do, failure error) error {
	r := Request{Do: do, Key: l.key}
	if deadline, ok := ctx.Deadline(); ok {
		r.Within = ms(time.Until(deadline).Round(time.Millisecond))
	}
	a, err := l.of.talk.Ask(l.of.life, r)
	switch {
	case err != nil:
		return err
	case a.Answer == Failed && a.Error != "":
		return fmt.Errorf("%w: %s", failure, a.Error)
	case a.Answer == Failed:
		return failure
	case a.Answer == Error:
		return a.reason()
	}
	if do == Acquire || do == Try {
		l.token = a.Token
	}
	return nil
}
