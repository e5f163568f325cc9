//go:build unix

package reuse_test

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lockfault/lockfault/faults/process"
	"github.com/lockfault/lockfault/faults/process/processtest"
	"github.com/lockfault/lockfault/faults/real"
	"github.com/lockfault/lockfault/faults/real/reuse"
	"github.com/lockfault/lockfault/internal/rediscli"
)

func TestMain(m *testing.M) {
	redis.SetLogger(quiet{}) // of connections that are killed here
	os.Exit(m.Run())
}

type quiet struct{}

func (quiet) Printf(context.Context, string, ...any) {}

func lend(t *testing.T, l *reuse.Pool) reuse.Handle {
	t.Helper()
	loan, err := l.Lend()
	if err != nil {
		t.Fatal(err)
	}
	return loan
}

func start(t *testing.T, loan reuse.Handle, spec real.ServerSpec) real.ManagedServer {
	t.Helper()
	spec.Password = loan.Password()
	s, err := loan.Start(t.Context(), spec)
	if errors.Is(err, real.ErrNoClock) && os.Getenv("CI") == "" {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	return s.(real.ManagedServer)
}

func client(t *testing.T, s real.Server, loan reuse.Handle, db int) *redis.Client {
	return processtest.Connect(t, s.Addr(), loan.Password(), db)
}

// life returns a value that differs between two processes of a server.
func life(t *testing.T, c *redis.Client) string {
	t.Helper()
	info, err := rediscli.Info(t.Context(), c, "server")
	if err != nil {
		t.Fatal(err)
	}
	return info["run_id"]
}

// must fails the test if a command does.
func must(t *testing.T, c *redis.Client, words ...any) {
	t.Helper()
	if err := c.Do(t.Context(), words...).Err(); err != nil {
		t.Fatalf("%v: %v", words, err)
	}
}

// TestTheNextWorldGetsItAsNew checks that the next world gets a server in its initial state,
// whatever the previous world did: the same process if the reset was complete, and otherwise a new
// one.
func TestTheNextWorldGetsItAsNew(t *testing.T) {
	clocked := real.ServerSpec{Name: "n1-0", Node: "n1", Clock: true}
	plain := real.ServerSpec{Name: "n1-0", Node: "n1"}
	for _, test := range []struct {
		name string
		spec real.ServerSpec
		do   func(t *testing.T, s real.ManagedServer, c *redis.Client, loan reuse.Handle)
		same bool // process
	}{
		{"nothing", plain, func(*testing.T, real.ManagedServer, *redis.Client, reuse.Handle) {}, true},
		{"keys", plain, func(t *testing.T, s real.ManagedServer, c *redis.Client, loan reuse.Handle) {
			must(t, c, "SET", "lock", "v", "PX", 1000)
			must(t, client(t, s, loan, 3), "HSET", "h", "f", "v")
		}, true},
		{"scripts", plain, func(t *testing.T, _ real.ManagedServer, c *redis.Client, _ reuse.Handle) {
			must(t, c, "EVAL", "return 1", 0)
			// Redis 6 has no functions.
			_ = c.Do(t.Context(), "FUNCTION", "LOAD", "#!lua name=lib\nredis.register_function('f', function() return 1 end)").Err()
		}, true},
		{"connections", plain, func(t *testing.T, s real.ManagedServer, c *redis.Client, loan reuse.Handle) {
			sub := c.Subscribe(t.Context(), "news")
			if _, err := sub.Receive(t.Context()); err != nil {
				t.Fatal(err)
			}
			go c.BLPop(context.Background(), 0, "queue")
			must(t, c, "CLIENT", "PAUSE", 60000, "WRITE")
		}, true},
		{"stopped, with a write in its socket", plain, func(t *testing.T, s real.ManagedServer, c *redis.Client, _ reuse.Handle) {
			if err := s.Pause(); err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
			defer cancel()
			if err := c.Set(ctx, "late", "v", 0).Err(); err == nil {
				t.Error("a stopped server answers")
			}
		}, true},
		{"a clock that was moved", clocked, func(t *testing.T, s real.ManagedServer, _ *redis.Client, _ reuse.Handle) {
			if err := s.SetClock(-time.Hour, 2); err != nil {
				t.Fatal(err)
			}
		}, true},
		{"a replica of somebody who has gone", plain, func(t *testing.T, _ real.ManagedServer, c *redis.Client, _ reuse.Handle) {
			must(t, c, "REPLICAOF", "127.0.0.1", "1")
		}, true},
		{"configuration", plain, func(t *testing.T, _ real.ManagedServer, c *redis.Client, _ reuse.Handle) {
			must(t, c, "CONFIG", "SET", "maxmemory-policy", "allkeys-lru")
		}, false},
		{"users", plain, func(t *testing.T, _ real.ManagedServer, c *redis.Client, _ reuse.Handle) {
			must(t, c, "ACL", "SETUSER", "guest", "on", "nopass", "~*", "+get")
		}, false},
		{"another password", plain, func(t *testing.T, _ real.ManagedServer, c *redis.Client, _ reuse.Handle) {
			must(t, c, "CONFIG", "SET", "requirepass", "other")
		}, false},
		{"its end", plain, func(t *testing.T, s real.ManagedServer, c *redis.Client, _ reuse.Handle) {
			must(t, c, "SET", "lock", "v")
			if err := s.Kill(); err != nil {
				t.Fatal(err)
			}
		}, false},
		{"its end, with a clock that was moved", clocked, func(t *testing.T, s real.ManagedServer, _ *redis.Client, _ reuse.Handle) {
			if err := errors.Join(s.SetClock(time.Hour, 1), s.Kill()); err != nil {
				t.Fatal(err)
			}
		}, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			lender := reuse.New(processtest.Host(t, process.Options{}))
			loan := lend(t, lender)
			s := start(t, loan, test.spec)
			c := client(t, s, loan, 0)
			former, was := c, life(t, c)
			test.do(t, s, c, loan)
			if err := loan.Close(); err != nil {
				t.Fatal(err)
			}
			if _, err := loan.Start(t.Context(), test.spec); err == nil {
				t.Error("something was lent on a loan that is over")
			}

			next := lend(t, lender)
			s = start(t, next, test.spec)
			c = client(t, s, next, 0)
			if same := life(t, c) == was; same != test.same {
				t.Errorf("the same process: %v", same)
			}
			info, err := rediscli.Info(t.Context(), c)
			if err != nil {
				t.Fatal(err)
			}
			// The client of before connects again as soon as it is thrown out, and finds that it
			// may not: for an instant it is there. Once it has ended nobody is.
			former.Close()
			for ends := time.Now().Add(time.Minute); info["connected_clients"] != "1"; time.Sleep(time.Millisecond) {
				if time.Now().After(ends) {
					t.Fatalf("%s clients are connected", info["connected_clients"])
				}
				now, err := rediscli.Info(t.Context(), c, "clients")
				if err != nil {
					t.Fatal(err)
				}
				info["connected_clients"] = now["connected_clients"]
			}
			for name, want := range map[string]string{
				"role": "master", "blocked_clients": "0", "pubsub_channels": "0",
				"number_of_cached_scripts": "0", "db0": "", "db3": "",
			} {
				if info[name] != want {
					t.Errorf("%s: %q, want %q", name, info[name], want)
				}
			}
			if n := info["number_of_functions"]; n != "" && n != "0" {
				t.Errorf("%s functions", n)
			}
			must(t, c, "SET", "free", "to write")
			asked := time.Now()
			shown, err := c.Time(t.Context()).Result()
			if err != nil || shown.Before(asked.Add(-5*time.Millisecond)) || shown.After(time.Now().Add(5*time.Millisecond)) {
				t.Errorf("its clock: %v, %v; it is %v", shown, err, asked)
			}
			users, err := c.ACLList(t.Context()).Result()
			policy := c.ConfigGet(t.Context(), "maxmemory-policy").Val()["maxmemory-policy"]
			if err != nil || len(users) != 1 || policy != "noeviction" {
				t.Errorf("users %q, %v; policy %s", users, err, policy)
			}
		})
	}
}

// TestReplicas checks that a lent server can follow another one and has its data, and that a reset
// undoes both.
func TestReplicas(t *testing.T) {
	lender := reuse.New(processtest.Host(t, process.Options{}))
	var lives [2]string
	for turn := range 3 {
		loan := lend(t, lender)
		// They change roles each time.
		names := [2]string{"n1-0", "n1-1"}
		primary := start(t, loan, real.ServerSpec{Name: names[turn%2]})
		replica := start(t, loan, real.ServerSpec{Name: names[1-turn%2]})
		p, r := client(t, primary, loan, 0), client(t, replica, loan, 0)
		host, port, _ := net.SplitHostPort(primary.Addr())
		must(t, r, "REPLICAOF", host, port)
		must(t, p, "SET", "turn", turn)
		for deadline := time.Now().Add(3 * time.Minute); r.Get(t.Context(), "turn").Val() == ""; time.Sleep(time.Millisecond) {
			if time.Now().After(deadline) {
				t.Fatal("the replica doesn't follow")
			}
		}
		if n := r.DBSize(t.Context()).Val(); n != 1 {
			t.Errorf("the replica has %d keys", n)
		}
		now := [2]string{life(t, p), life(t, r)}
		if turn%2 == 1 {
			now[0], now[1] = now[1], now[0]
		}
		if turn > 0 && now != lives {
			t.Errorf("in turn %d others were lent", turn)
		}
		lives = now
		if err := loan.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// TestNoClock checks that, where clocks can't be moved, only a request for a server with a clock
// fails.
func TestNoClock(t *testing.T) {
	none := reuse.New(processtest.Host(t, process.Options{CC: "no-such-compiler", Dir: t.TempDir()}))
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	for turn := range 3 {
		loan := lend(t, none)
		if turn > 0 {
			spec := real.ServerSpec{Name: "n1-0", Password: loan.Password(), Clock: true}
			if _, err := loan.Start(t.Context(), spec); !errors.Is(err, real.ErrNoClock) {
				t.Errorf("without a compiler: %v", err)
			}
		}
		start(t, loan, real.ServerSpec{Name: "n1-0"})
		start(t, loan, real.ServerSpec{Name: "n1-1"})
		if err := loan.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// The logs of a loan are those of its own time.
func TestLogs(t *testing.T) {
	lender := reuse.New(processtest.Host(t, process.Options{}))
	logged := func(loan reuse.Handle) string {
		dir := t.TempDir()
		if err := loan.CopyLogs(dir); err != nil {
			t.Fatal(err)
		}
		text, err := os.ReadFile(filepath.Join(dir, "n1-0.log"))
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	first := lend(t, lender)
	s := start(t, first, real.ServerSpec{Name: "n1-0"})
	must(t, client(t, s, first, 0), "REPLICAOF", "127.0.0.1", "1")
	if text := logged(first); !strings.Contains(text, "Ready to accept") || !strings.Contains(text, "REPLICAOF 127.0.0.1:1 ") {
		t.Errorf("its log:\n%s", text)
	}
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	second := lend(t, lender)
	s = start(t, second, real.ServerSpec{Name: "n1-0"})
	must(t, client(t, s, second, 0), "REPLICAOF", "127.0.0.1", "2")
	if text := logged(second); strings.Contains(text, "Ready to accept") || strings.Contains(text, "127.0.0.1:1 ") || !strings.Contains(text, "REPLICAOF 127.0.0.1:2 ") {
		t.Errorf("the log of the second loan:\n%s", text)
	}
}

// When a server can't be started nothing is lent any more, nor after the end.
func TestTheEnd(t *testing.T) {
	dir := t.TempDir()
	lender := reuse.New(processtest.Host(t, process.Options{Dir: dir}))
	loan := lend(t, lender)
	start(t, loan, real.ServerSpec{Name: "n1-0"})
	if _, err := loan.Start(t.Context(), real.ServerSpec{Name: "no name", Password: loan.Password()}); err == nil {
		t.Error("a server without a proper name was started")
	}
	if err := loan.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := lender.Lend(); err == nil || !strings.Contains(err.Error(), "no name") {
		t.Errorf("after a start that failed: %v", err)
	}
	for range 2 {
		if err := lender.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if left, _ := os.ReadDir(dir); len(left) > 0 {
		t.Errorf("left: %v", left)
	}

	lender = reuse.New(processtest.Host(t, process.Options{}))
	loan = lend(t, lender)
	if _, err := loan.Start(t.Context(), real.ServerSpec{Name: "n1-0", Password: "other"}); err == nil {
		t.Error("it was lent with another password")
	}
	if err := errors.Join(lender.Close(), loan.Close()); err != nil {
		t.Fatal(err)
	}
	if _, err := lender.Lend(); err == nil {
		t.Error("something was lent after the end")
	}
}
