//go:build unix

package process_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lockfault/lockfault/faults/process"
	"github.com/lockfault/lockfault/faults/process/processtest"
	"github.com/lockfault/lockfault/faults/real"
)

// startClocked returns a server whose clock can be moved.
func startClocked(t *testing.T, h *process.Host, spec real.ServerSpec) real.ManagedServer {
	t.Helper()
	spec.Clock, spec.Password = true, password
	s, err := h.Start(t.Context(), spec)
	if errors.Is(err, real.ErrNoClock) && os.Getenv("CI") == "" {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	return s.(real.ManagedServer)
}

// lease sets a key with a lease, which must be whole.
func lease(t *testing.T, c *redis.Client, key string, d time.Duration) {
	t.Helper()
	if err := c.Set(t.Context(), key, "v", d).Err(); err != nil {
		t.Fatal(err)
	}
}

// left returns what is left of a key's lease, and the time before and after
// it was asked for.
func left(t *testing.T, c *redis.Client, key string) (left time.Duration, before, after time.Time) {
	t.Helper()
	before = time.Now()
	left, err := c.PTTL(t.Context(), key).Result()
	if err != nil {
		t.Fatal(err)
	}
	return left, before, time.Now()
}

// ahead bounds how far the server's clock is ahead.
func ahead(t *testing.T, c *redis.Client) (least, most time.Duration) {
	t.Helper()
	before := time.Now()
	at, err := c.Time(t.Context()).Result()
	if err != nil {
		t.Fatal(err)
	}
	// The server reads microseconds.
	return time.Until(at) - time.Millisecond, at.Sub(before) + time.Millisecond
}

func within(t *testing.T, what string, least, most, want time.Duration) {
	t.Helper()
	if want < least || want > most {
		t.Errorf("%s: %v is not between %v and %v", what, want, least, most)
	}
}

func set(t *testing.T, s real.ManagedServer, offset time.Duration, rate float64) {
	t.Helper()
	if err := s.SetClock(offset, rate); err != nil {
		t.Fatal(err)
	}
}

func TestClockJumps(t *testing.T) {
	h := processtest.Host(t, process.Options{})
	s := startClocked(t, h, real.ServerSpec{Name: "n1"})
	c := client(t, s.Addr())

	least, most := ahead(t, c)
	within(t, "at the start", least, most, 0)

	lease(t, c, "k", time.Minute)
	set(t, s, 2*time.Minute, 1)
	if n, err := c.Exists(t.Context(), "k").Result(); err != nil || n != 0 {
		t.Errorf("a minute's lease outlived two: %d, %v", n, err)
	}
	least, most = ahead(t, c)
	within(t, "after a jump forward", least, most, 2*time.Minute)

	lease(t, c, "k", time.Minute)
	set(t, s, -2*time.Minute, 1)
	if ttl, _, _ := left(t, c, "k"); ttl < 4*time.Minute || ttl > 5*time.Minute {
		t.Errorf("a minute's lease, four minutes back, has %v left", ttl)
	}
	least, most = ahead(t, c)
	within(t, "after a jump back", least, most, -2*time.Minute)

	set(t, s, 0, 1)
	if ttl, _, _ := left(t, c, "k"); ttl < 2*time.Minute || ttl > 3*time.Minute {
		t.Errorf("back at true time it has %v left", ttl)
	}
	least, most = ahead(t, c)
	within(t, "back at true time", least, most, 0)
}

// Readings of the lease bound how fast it goes, however slow the machine.
func TestClockDrifts(t *testing.T) {
	h := processtest.Host(t, process.Options{})
	s := startClocked(t, h, real.ServerSpec{Name: "n1"})
	c := client(t, s.Addr())
	for _, rate := range []float64{10, 0.1, 1000, 1} {
		lease(t, c, "k", time.Hour)
		set(t, s, 0, rate)
		first, before, since := left(t, c, "k")
		time.Sleep(100 * time.Millisecond)
		second, until, after := left(t, c, "k")
		least := time.Duration(float64(until.Sub(since)) * rate)
		most := time.Duration(float64(after.Sub(before)) * rate)
		within(t, "lease gone at rate "+time.Duration(rate*float64(time.Second)).String()+" a second",
			least-2*time.Millisecond, most+2*time.Millisecond, first-second)
	}

	// Nobody asks for this one: the server itself removes it, and in time.
	set(t, s, 0, 10)
	begun := time.Now()
	lease(t, c, "k", 5*time.Second)
	eventually(t, "the key expires", func() bool { return c.DBSize(t.Context()).Val() == 0 })
	if took := time.Since(begun); took < 490*time.Millisecond {
		t.Errorf("5 s at ten times the speed took %v", took)
	} else {
		t.Logf("5 s at ten times the speed took %v", took)
	}

	// Drift goes on where the jump left off.
	set(t, s, time.Minute, 2)
	begun = time.Now()
	least, most := ahead(t, c)
	if most < time.Minute || least > time.Minute+time.Since(begun) {
		t.Errorf("a minute ahead, at twice the speed: between %v and %v", least, most)
	}
}

// A server whose clock was set back still expires keys and feeds its replica.
func TestServerLivesOnAfterAJumpBack(t *testing.T) {
	h := processtest.Host(t, process.Options{})
	primary := startClocked(t, h, real.ServerSpec{Name: "n1"})
	replica := startClocked(t, h, real.ServerSpec{Name: "n1-r1"})
	follow(t, replica, primary)
	c := client(t, primary.Addr())
	set(t, primary, -time.Hour, 1)
	lease(t, c, "k", 50*time.Millisecond)
	eventually(t, "the key expires", func() bool { return c.DBSize(t.Context()).Val() == 0 })
	lease(t, c, "l", time.Minute)
	if n, err := c.Wait(t.Context(), 1, 20*time.Second).Result(); err != nil || n != 1 {
		t.Errorf("%d replicas have it, %v", n, err)
	}
	// A lease travels as the time at which it ends, by the primary's clock:
	// to a replica an hour ahead it is over, until that one goes back too.
	r := client(t, replica.Addr())
	if n, err := r.Exists(t.Context(), "l").Result(); err != nil || n != 0 {
		t.Errorf("a replica an hour ahead shows a minute's lease: %d, %v", n, err)
	}
	set(t, replica, -time.Hour, 1)
	if n, err := r.Exists(t.Context(), "l").Result(); err != nil || n != 1 {
		t.Errorf("a replica as far back as its primary doesn't show it: %d, %v", n, err)
	}
}

// The clock is the machine's: it outlives the process.
func TestClockOutlivesTheServer(t *testing.T) {
	h := processtest.Host(t, process.Options{})
	s := startClocked(t, h, real.ServerSpec{Name: "n1"})
	set(t, s, time.Hour, 1)
	if err := s.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := s.Restart(t.Context(), false); err != nil {
		t.Fatal(err)
	}
	least, most := ahead(t, client(t, s.Addr()))
	within(t, "after a restart", least, most, time.Hour)
}

func TestClockRefuses(t *testing.T) {
	h := processtest.Host(t, process.Options{})
	s := startClocked(t, h, real.ServerSpec{Name: "n1"})
	for _, rate := range []float64{0, -1, 1001} {
		if err := s.SetClock(0, rate); err == nil {
			t.Errorf("a rate of %v was taken", rate)
		}
	}
	if err := start(t, h, real.ServerSpec{Name: "n2"}).SetClock(0, 1); err == nil {
		t.Error("a clock was moved that is everybody's")
	}
}

func TestNoCompiler(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	for _, c := range []struct{ cc, want string }{
		{"no-such-compiler", "install one"},
		{"false", "can't compile the shim"},
		{"true", "is no library"},
	} {
		h := processtest.Host(t, process.Options{CC: c.cc})
		_, err := h.Start(t.Context(), real.ServerSpec{Name: "n1", Password: password, Clock: true})
		if !errors.Is(err, real.ErrNoClock) || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("with %s: %v", c.cc, err)
		}
		if err := h.CanMoveClocks(t.Context()); !errors.Is(err, real.ErrNoClock) {
			t.Errorf("with %s: %v", c.cc, err)
		}
		start(t, h, real.ServerSpec{Name: "n2"}) // needs none
	}
}

// TestShimThatDoesNotLoad checks that a server that doesn't load the shim is refused.
func TestShimThatDoesNotLoad(t *testing.T) {
	h := processtest.Host(t, process.Options{})
	if err := h.CanMoveClocks(t.Context()); err != nil {
		if errors.Is(err, real.ErrNoClock) && os.Getenv("CI") == "" {
			t.Skip(err)
		}
		t.Fatal(err)
	}
	built, err := filepath.Glob(filepath.Join(h.Dir(), "clock-*.so")) // what is loaded stands in the host's directory
	if err != nil || len(built) != 1 {
		t.Fatal(built, err)
	}
	if err := os.WriteFile(built[0], nil, 0o600); err != nil {
		t.Fatal(err)
	}
	_, err = h.Start(t.Context(), real.ServerSpec{Name: "n1", Password: password, Clock: true})
	if !errors.Is(err, real.ErrNoClock) || !strings.Contains(err.Error(), "doesn't load the library that moves it") {
		t.Error(err)
	}
}

// Where the cache can't be written to, the host's own directory serves.
func TestNoCache(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("XDG_CACHE_HOME", file)
	h := processtest.Host(t, process.Options{})
	set(t, startClocked(t, h, real.ServerSpec{Name: "n1"}), time.Hour, 1)
}
