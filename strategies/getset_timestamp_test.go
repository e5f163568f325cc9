package strategies_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/lockfault/lockfault/strategies"
	"github.com/lockfault/lockfault/strategies/internal/strategytest"
)

func TestGetsetTimestampBelievesTheClientsClock(t *testing.T) {
	strategytest.Run(t, lookup(t, "getset-timestamp"), func(t *testing.T, r *strategytest.Fixture) {
		want(t, "A's attempt", try(r, "A"), nil)
		want(t, "B's attempt", try(r, "B"), strategies.ErrNotAcquired)
		r.Ahead("B", strategytest.TTL)
		want(t, "B's attempt with a clock that is ahead", try(r, "B"), nil)
		want(t, "A's release", release(r, "A"), strategies.ErrNotHeld)
		want(t, "B's release", release(r, "B"), nil)
	})
}

func TestGetsetTimestampLoserPutsBackWhatItFound(t *testing.T) {
	strategytest.Run(t, lookup(t, "getset-timestamp"), func(t *testing.T, r *strategytest.Fixture) {
		want(t, "A's attempt", try(r, "A"), nil)
		time.Sleep(2 * strategytest.TTL)
		r.Slow(1, time.Millisecond) // so that B and C read the same old value
		r.Forget()

		results := make(chan error, 2)
		for _, name := range []string{"B", "C"} {
			lock := r.Lock(name).(strategies.TryAcquirer)
			go func() { results <- lock.TryAcquire(context.Background()) }()
		}
		first, second := <-results, <-results
		if first != nil {
			first, second = second, first
		}
		want(t, "the winner", first, nil)
		want(t, "the loser", second, strategies.ErrNotAcquired)
		if got, wanted := r.Names(), []string{"SETNX", "SETNX", "GET", "GET", "GETSET", "GETSET", "SET"}; !slices.Equal(got, wanted) {
			t.Fatalf("the wire saw %v, want %v", got, wanted)
		}
		// With two contenders what the loser puts back is the winner's.
		if b, c := release(r, "B"), release(r, "C"); (b == nil) == (c == nil) {
			t.Fatalf("releases: B %v, C %v; want exactly the winner's to succeed", b, c)
		}
	})
}

func TestGetsetTimestampThatFindsNothingLeavesItsValue(t *testing.T) {
	strategytest.Run(t, lookup(t, "getset-timestamp"), func(t *testing.T, r *strategytest.Fixture) {
		want(t, "A's attempt", try(r, "A"), nil)
		time.Sleep(2 * strategytest.TTL)
		r.Slow(1, time.Millisecond)
		r.Lock("B")
		result := make(chan error, 1)
		go func() { result <- try(r, "B") }()
		time.Sleep(2500 * time.Microsecond) // SETNX and GET are done
		r.Server(1).Del(strategytest.Key)
		want(t, "B's attempt", <-result, strategies.ErrNotAcquired)
		value, err := r.Server(1).Get(strategytest.Key)
		if err != nil || !strings.HasPrefix(value, "process-B") {
			t.Fatalf("the key holds %q (%v), want what B set", value, err)
		}
	})
}

func TestGetsetTimestampRefusesAForeignValue(t *testing.T) {
	strategytest.Run(t, lookup(t, "getset-timestamp"), func(t *testing.T, r *strategytest.Fixture) {
		for _, value := range []string{"hello", "hello_", "1_x", ""} {
			if err := r.Server(1).Set(strategytest.Key, value); err != nil {
				t.Fatal(err)
			}
			err := try(r, "A")
			if !errors.Is(err, strategies.ErrNotAcquired) || !strings.Contains(err.Error(), "no timestamp") {
				t.Errorf("with %q: %v, want no timestamp", value, err)
			}
		}
	})
}
