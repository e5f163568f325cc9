package locktest

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/lockfault/lockfault/scenarios"
	"github.com/lockfault/lockfault/strategies"
)

// A Subject is a lock to be tested. Only New is needed.
type Subject struct {
	// New makes one client's lock on the key in env. It may talk to Redis.
	New func(env Env) (Lock, error)
	// TTL is the lease; 0 is each scenario's own, mostly 30s, in Env.TTL. A lock that
	// takes no lease from Env says here how long its own is.
	TTL time.Duration
	// Refused are the errors by which the lock says that it is taken, or no longer its
	// user's, if these aren't ErrNotAcquired and ErrNotHeld. errors.Is tells them.
	Refused []error
	// Nodes is how many independent servers the lock runs on; 0 means 1.
	Nodes int
	// Name is what reports and files call the lock: lower-case letters, digits and
	// dashes. Empty is the test's name in that form: test-my-lock for TestMyLock.
	Name string
	// Tags say what kind of lock it is, where that doesn't show: whether it renews its
	// lease, needs a majority, has fencing tokens or can be extended is found out.
	Tags []string
	// Keys and Owner say whose the lock is, where the words in its key don't tell: see
	// the same fields of strategies.Strategy.
	Keys  func(key string) []string
	Owner func(Change) (client string, known bool)
	// Varies says why two runs of one seed may differ in the order of what happens.
	Varies string
}

// Funcs makes a [Lock] of functions: Lock and Unlock are needed.
type Funcs struct {
	// Lock blocks until the lock is held, or ctx is done.
	Lock func(ctx context.Context) error
	// Unlock gives it up.
	Unlock func(ctx context.Context) error
	// TryLock makes one attempt. With it [Explore] sees far more: what polls has no end.
	TryLock func(ctx context.Context) error
	// Extend prolongs the lease.
	Extend func(ctx context.Context) error
}

// Acquire calls Lock.
func (f Funcs) Acquire(ctx context.Context) error { return f.Lock(ctx) }

// Release calls Unlock.
func (f Funcs) Release(ctx context.Context) error { return f.Unlock(ctx) }

// What Funcs are with the functions that they have: abilities are told by methods.
type (
	trying    struct{ Funcs }
	extending struct{ of Funcs }
	both      struct{ trying }
)

func (f trying) TryAcquire(ctx context.Context) error { return f.TryLock(ctx) }

func (f both) Extend(ctx context.Context) error { return f.trying.Funcs.Extend(ctx) }

func (f extending) Acquire(ctx context.Context) error { return f.of.Lock(ctx) }
func (f extending) Release(ctx context.Context) error { return f.of.Unlock(ctx) }
func (f extending) Extend(ctx context.Context) error  { return f.of.Extend(ctx) }

// able returns a lock whose methods are what it can do.
func able(l Lock) Lock {
	f, ok := l.(Funcs)
	switch {
	case !ok:
		return l
	case f.TryLock != nil && f.Extend != nil:
		return both{trying{f}}
	case f.TryLock != nil:
		return trying{f}
	case f.Extend != nil:
		return extending{f}
	}
	return f
}

// Poll makes attempts, a pause between two, until one gets the lock: for locks that
// only try. When ctx is done it returns ErrNotAcquired; an error of an attempt it
// returns at once.
func Poll(ctx context.Context, pause time.Duration, try func(context.Context) (bool, error)) error {
	return strategies.Poll(ctx, pause, func(ctx context.Context) error {
		won, err := try(ctx)
		if err == nil && !won {
			err = ErrNotAcquired
		}
		return err
	})
}

// strategy returns the subject as the harness takes it.
func (s Subject) strategy(t *testing.T) (strategies.Strategy, error) {
	switch {
	case s.New == nil:
		return strategies.Strategy{}, errors.New("Subject.New is nil: it makes the lock")
	case s.TTL < 0 || s.TTL%time.Millisecond != 0:
		return strategies.Strategy{}, fmt.Errorf("Subject.TTL is %v: give the lease in whole milliseconds, or 0 for each scenario's own", s.TTL)
	case s.Nodes < 0 || s.Nodes > scenarios.MaxNodes:
		return strategies.Strategy{}, fmt.Errorf("Subject.Nodes is %d: give 1 to %d, as many as a script may have", s.Nodes, scenarios.MaxNodes)
	}
	for _, tag := range s.Tags {
		if known := strategies.Tags(); !slices.Contains(known, tag) {
			return strategies.Strategy{}, fmt.Errorf("no tag is called %q%s", tag, suggestion(tag, known))
		}
	}
	name := s.Name
	if name == "" {
		name = nameOf(t.Name())
	}
	tag, other := strategies.TagSingle, strategies.TagMulti
	if s.Nodes > 1 {
		tag, other = other, tag
	}
	if slices.Contains(s.Tags, other) {
		return strategies.Strategy{}, fmt.Errorf("Subject.Tags has %s, but the lock is on %d nodes", other, max(1, s.Nodes))
	}
	made := s.New
	s.New = func(env Env) (Lock, error) {
		l, err := made(env)
		if f, ok := l.(Funcs); ok && err == nil && (f.Lock == nil || f.Unlock == nil) {
			return nil, errors.New("Funcs needs both Lock and Unlock")
		}
		return able(l), err
	}
	strategy := strategies.Strategy{
		Name: name, Summary: "the lock of " + t.Name(), Source: t.Name(), Nodes: s.Nodes,
		Tags: append([]string{tag}, slices.DeleteFunc(slices.Clone(s.Tags), func(t string) bool { return t == tag })...), Keys: s.Keys, Owner: s.Owner, HistoryVaries: s.Varies, Refusals: s.Refused, New: s.New,
	}
	// Which names and tags a strategy may have a registry knows.
	_, err := strategies.Registry{}.With(strategy)
	return strategy, err
}

// nameOf returns a test's name as strategies have theirs: test-my-lock for TestMyLock.
// No lock of the library's has such a name, so no scenario means this one by it.
func nameOf(test string) string {
	var b strings.Builder
	inWord := false
	for _, r := range test {
		letter := r < unicode.MaxASCII && (unicode.IsLetter(r) || unicode.IsDigit(r))
		if b.Len() > 0 && (!letter || unicode.IsUpper(r) && inWord) && !strings.HasSuffix(b.String(), "-") {
			b.WriteByte('-')
		}
		if letter {
			b.WriteRune(unicode.ToLower(r))
		}
		inWord = letter && !unicode.IsUpper(r)
	}
	return strings.Trim(b.String(), "-")
}

// fileOf returns a test's name as a file or directory has it: no two tests have one.
func fileOf(test string) string {
	var b strings.Builder
	for _, r := range test {
		switch {
		case unicode.IsLetter(r), unicode.IsDigit(r), r == '_', r == '-', r == '/':
			b.WriteRune(r)
		default:
			fmt.Fprintf(&b, "%%%02x", r)
		}
	}
	return filepath.FromSlash(b.String())
}
