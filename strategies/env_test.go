package strategies

import (
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

func TestEnvCheck(t *testing.T) {
	good := func() Env {
		return Env{
			Nodes: make([]redis.UniversalClient, 5),
			Key:   "k",
			TTL:   time.Second,
			Now:   time.Now,
			Rand:  rand.New(rand.NewPCG(1, 2)),
		}
	}
	for _, c := range []struct {
		change func(*Env)
		want   string
	}{
		{func(*Env) {}, ""},
		{func(e *Env) { e.Nodes = e.Nodes[:4] }, "runs on 5 nodes, but Env.Nodes has 4"},
		{func(e *Env) { e.Key = "" }, "Env.Key is empty"},
		{func(e *Env) { e.TTL = 0 }, "Env.TTL is 0s"},
		{func(e *Env) { e.TTL = 999 * time.Microsecond }, "no less than 1ms"},
		{func(e *Env) { e.Now = nil }, "Env.Now is nil"},
		{func(e *Env) { e.Rand = nil }, "Env.Rand is nil"},
	} {
		env := good()
		c.change(&env)
		err := env.Check("mine", 5)
		switch {
		case c.want == "" && err != nil:
			t.Error(err)
		case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)):
			t.Errorf("%v, want an error with %q", err, c.want)
		}
	}
	// Every strategy checks, so a bad Env is an error and no panic.
	for _, s := range Builtin().All() {
		if _, err := s.New(Env{}); err == nil || !strings.Contains(err.Error(), s.Name) {
			t.Errorf("%s takes an empty Env: %v", s.Name, err)
		}
	}
}

func TestCompanionStaysInTheSlot(t *testing.T) {
	for key, want := range map[string]string{
		"lock":         "{lock}:fence",
		"{user}:lock":  "{user}:lock:fence",
		"orders{7}one": "orders{7}one:fence",
	} {
		if got := companion(key, "fence"); got != want {
			t.Errorf("companion(%q) = %q, want %q", key, got, want)
		}
	}
}

func TestTokensDiffer(t *testing.T) {
	seen := map[string]bool{}
	// Even two clients with one seed have different tokens.
	for _, owner := range []string{"a", "b"} {
		env := Env{Owner: owner, Rand: rand.New(rand.NewPCG(1, 2))}
		for range 100 {
			seen[env.token()] = true
		}
	}
	if len(seen) != 200 {
		t.Errorf("200 tokens have %d values", len(seen))
	}
}

func TestNodeTimeout(t *testing.T) {
	for ttl, want := range map[time.Duration]time.Duration{
		30 * time.Second:       50 * time.Millisecond,
		5 * time.Second:        50 * time.Millisecond,
		time.Second:            50 * time.Millisecond,
		500 * time.Millisecond: 25 * time.Millisecond,
		50 * time.Millisecond:  5 * time.Millisecond,
	} {
		if got := nodeTimeout(ttl); got != want {
			t.Errorf("nodeTimeout(%s) = %s, want %s", ttl, got, want)
		}
	}
}
