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

	"github.com/lockfault/lockfault/internal/leases"
	"github.com/lockfault/lockfault/scenarios"
	"github.com/lockfault/lockfault/strategies"
)

// Subject describes a lock to test. Only New is required.
type Subject struct {
	// New builds one client's lock on the key in env. New may use Redis.
	New func(env Env) (Lock, error)
	// TTL is the lease; 0 means each scenario's own lease, mostly 30 s, which New gets in Env.TTL.
	// For a lock that does not take its lease from Env, TTL must be the lock's own lease.
	TTL time.Duration
	// Refused lists the errors that mean that the lock is taken, or no longer held, if the lock
	// does not use ErrNotAcquired and ErrNotHeld. errors.Is matches them.
	Refused []error
	// Nodes is the number of independent servers of the lock; 0 means 1.
	Nodes int
	// Name identifies the lock in reports and files: lower-case letters, digits and dashes. If Name
	// is empty, the name is the test's name in that form: test-my-lock for TestMyLock.
	Name string
	// Tags describe properties of the lock that locktest cannot find out. locktest itself finds out
	// whether the lock renews its lease, notifies its holder of a loss in time, needs a majority, has
	// fencing tokens or can be extended.
	Tags []string
	// Keys and Owner determine the lock's owner if the words in its key do not: see the same fields
	// of strategies.Strategy.
	Keys  func(key string) []string
	Owner func(Change) (client string, known bool)
	// Varies gives the reason why two runs with the same seed may differ in the order of events.
	Varies string
}

// Poll makes attempts, with a pause between two attempts, until an attempt acquires the lock. Poll
// is for locks that can only try. When ctx is done, Poll returns ErrNotAcquired; an error of an
// attempt is returned at once.
func Poll(ctx context.Context, pause time.Duration, try func(context.Context) (bool, error)) error {
	return strategies.Poll(ctx, pause, func(ctx context.Context) error {
		won, err := try(ctx)
		if err == nil && !won {
			err = ErrNotAcquired
		}
		return err
	})
}

// strategy returns the subject as a strategy for the harness.
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
		known := append(strategies.Tags(), leases.ClassNames()...)
		if !slices.Contains(known, tag) {
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
		if err != nil || l == nil {
			return l, err
		}
		return adapt(l)
	}
	strategy := strategies.Strategy{
		Name: name, Summary: "the lock of " + t.Name(), Source: t.Name(), Nodes: s.Nodes,
		Tags: append([]string{tag}, slices.DeleteFunc(slices.Clone(s.Tags), func(t string) bool { return t == tag })...), Keys: s.Keys, Owner: s.Owner, HistoryVaries: s.Varies, Refusals: s.Refused, New: s.New,
	}
	// The registry validates the strategy's name and tags.
	_, err := strategies.Registry{}.With(strategy)
	return strategy, err
}

// nameOf converts a test's name to a strategy name: test-my-lock for TestMyLock. No lock of the
// library has such a name, so no scenario names this lock.
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

// fileOf converts a test's name to a file or directory name. Different tests have different file
// names.
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
