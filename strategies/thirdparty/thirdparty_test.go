package thirdparty_test

import (
	"context"
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/lockfault/lockfault/strategies"
	"github.com/lockfault/lockfault/strategies/internal/strategytest"
	"github.com/lockfault/lockfault/strategies/thirdparty"
)

func TestMain(m *testing.M) {
	strategytest.Quiet()
	os.Exit(m.Run())
}

func lookup(t *testing.T, name string) strategies.Strategy {
	t.Helper()
	for _, s := range thirdparty.All() {
		if s.Name == name {
			return s
		}
	}
	t.Fatalf("there is no strategy %s", name)
	return strategies.Strategy{}
}

// testdata/NAME.txt has what the libraries send for a hand-over from A to B, so
// that a new version which sends something else is noticed.
func TestWire(t *testing.T) {
	for _, s := range thirdparty.All() {
		if s.Name == "rueidislock" {
			continue // it needs CLIENT TRACKING, which the rig's servers don't know
		}
		t.Run(s.Name, func(t *testing.T) {
			strategytest.PlayGolden(t, s, s.Name, `
				A acquire
				B try
				B begin acquire 1m
				wait 120ms
				A release
				join B
				B extend
				A release
				B release
			`)
		})
	}
}

func TestBadEnv(t *testing.T) {
	for _, s := range thirdparty.All() {
		if _, err := s.New(strategies.Env{}); err == nil || !strings.Contains(err.Error(), s.Name) {
			t.Errorf("%s takes an empty Env: %v", s.Name, err)
		}
	}
}

func try(r *strategytest.Fixture, client string) error {
	r.T.Helper()
	return r.Lock(client).(strategies.TryAcquirer).TryAcquire(context.Background())
}

func release(r *strategytest.Fixture, client string) error {
	r.T.Helper()
	return r.Lock(client).Release(context.Background())
}

func want(t *testing.T, what string, err, wanted error) {
	t.Helper()
	if !errors.Is(err, wanted) {
		t.Fatalf("%s: %v, want %v", what, err, wanted)
	}
}
