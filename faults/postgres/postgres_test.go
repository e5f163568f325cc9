package postgres

import (
	"context"
	"errors"
	"net/url"
	"os"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/lockfault/lockfault/faults/real"
	"github.com/lockfault/lockfault/faults/real/daemon"
)

// host makes a host, and skips the test where PostgreSQL is missing.
func host(t *testing.T, replicas bool) *Host {
	t.Helper()
	in, err := Find(t.Context())
	var missing *daemon.MissingError
	if errors.As(err, &missing) && os.Getenv("CI") == "" {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	dir, err := os.MkdirTemp("", "lockfault-test-")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(dir, 0o711); err != nil {
		t.Fatal(err)
	}
	h, err := New(Options{Installation: in, Replicas: replicas, Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			logs := t.TempDir()
			_ = h.CopyLogs(logs)
			for _, name := range []string{"n1-0", "n1-1"} {
				text, _ := os.ReadFile(logs + "/" + name + ".log")
				t.Logf("%s:\n%s", name, text)
			}
		}
		if err := h.Close(); err != nil {
			t.Error(err)
		}
		if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
			t.Errorf("left behind: %v %v", left, err)
		}
		_ = os.RemoveAll(dir)
	})
	return h
}

func start(t *testing.T, h *Host, spec real.ServerSpec) *server {
	t.Helper()
	spec.Node, spec.Password = "n1", "it's secret"
	s, err := h.Start(t.Context(), spec)
	if err != nil { // the logs are shown at the end
		t.Fatal(err)
	}
	return s.(*server)
}

func connect(ctx context.Context, s *server, password string) (*pgx.Conn, error) {
	at := url.URL{Scheme: "postgres", User: url.UserPassword(loginName, password), Host: s.Addr(), Path: database, RawQuery: "sslmode=disable"}
	return pgx.Connect(ctx, at.String())
}

func TestServersAskForAPassword(t *testing.T) {
	s := start(t, host(t, false), real.ServerSpec{Name: "n1-0"})
	if _, err := connect(t.Context(), s, "another"); err == nil {
		t.Error("a wrong password will do")
	}
	c, err := connect(t.Context(), s, "it's secret")
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close(context.WithoutCancel(t.Context()))
	if _, err := c.Exec(t.Context(), "CREATE TABLE locks (name text); INSERT INTO locks VALUES ('x')"); err != nil {
		t.Fatal(err)
	}
	// Nobody is served while it is stopped, a connection that it had neither.
	if err := s.Pause(); err != nil {
		t.Fatal(err)
	}
	got := make(chan error, 1)
	go func() { got <- c.Ping(t.Context()) }()
	select {
	case err := <-got:
		t.Errorf("one who is stopped answers: %v", err)
	case <-time.After(100 * time.Millisecond):
	}
	if err := s.Resume(); err != nil {
		t.Fatal(err)
	}
	if err := <-got; err != nil {
		t.Error(err)
	}
	// What it had it has again.
	if err := s.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := c.Ping(t.Context()); err == nil {
		t.Error("one who was killed answers")
	}
	if err := s.Restart(t.Context(), true); err == nil {
		t.Error("it came back without its data")
	}
	if err := s.Restart(t.Context(), false); err != nil {
		t.Fatal(err)
	}
	again, err := connect(t.Context(), s, "it's secret")
	if err != nil {
		t.Fatal(err)
	}
	defer again.Close(context.WithoutCancel(t.Context()))
	var n int
	if err := again.QueryRow(t.Context(), "SELECT count(*) FROM locks").Scan(&n); err != nil || n != 1 {
		t.Error(n, err)
	}
	if err := s.SetClock(time.Second, 1); !errors.Is(err, real.ErrNoClock) {
		t.Error(err)
	}
}

// All of a server's processes go by its clock, those of connections that there were, too.
func TestClock(t *testing.T) {
	h := host(t, false)
	if err := h.CanMoveClocks(t.Context()); err != nil && os.Getenv("CI") == "" {
		t.Skip(err)
	}
	s := start(t, h, real.ServerSpec{Name: "n1-0", Clock: true})
	c, err := connect(t.Context(), s, "it's secret")
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close(context.WithoutCancel(t.Context()))
	ahead := func() (by time.Duration) {
		var now time.Time
		if err := c.QueryRow(t.Context(), "SELECT now()").Scan(&now); err != nil {
			t.Fatal(err)
		}
		by = time.Until(now)
		if says, err := s.Time(t.Context()); err != nil || (time.Until(says)-by).Abs() > time.Minute {
			t.Errorf("it says %v, %v", says, err)
		}
		return by
	}
	for _, offset := range []time.Duration{time.Hour, -24 * time.Hour, 0} {
		if err := s.SetClock(offset, 1); err != nil {
			t.Fatal(err)
		}
		if by := ahead(); (by - offset).Abs() > time.Minute {
			t.Errorf("set ahead by %v it is ahead by %v", offset, by)
		}
	}
	// A clock that runs so fast is soon ahead, however slow this machine is.
	if err := s.SetClock(0, 1000); err != nil {
		t.Fatal(err)
	}
	for ahead() < 10*time.Second {
		time.Sleep(time.Millisecond)
	}
	// Who is started again goes by it still.
	if err := errors.Join(s.SetClock(time.Hour, 1), s.Kill(), s.Restart(t.Context(), false)); err != nil {
		t.Fatal(err)
	}
	if says, err := s.Time(t.Context()); err != nil || time.Until(says) < 30*time.Minute {
		t.Errorf("after a restart it says %v, %v", says, err)
	}
}

func TestStandby(t *testing.T) {
	h := host(t, true)
	primary := start(t, h, real.ServerSpec{Name: "n1-0"})
	standby := start(t, h, real.ServerSpec{Name: "n1-1", Replica: true})
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := standby.Follow(ctx, primary.Addr()); err != nil {
		t.Fatal(err)
	}
	c, err := connect(ctx, primary, "it's secret")
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close(context.WithoutCancel(ctx))
	// Who asks for it has waited for the standby.
	if _, err := c.Exec(ctx, "SET synchronous_commit = remote_apply"); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Exec(ctx, "CREATE TABLE locks (name text)"); err != nil {
		t.Fatal(err)
	}
	inStep(t, primary, standby)
	if err := primary.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := standby.Promote(ctx); err != nil {
		t.Fatal(err)
	}
	d, err := connect(ctx, standby, "it's secret")
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close(context.WithoutCancel(ctx))
	if _, err := d.Exec(ctx, "SET synchronous_commit = on; INSERT INTO locks VALUES ('x')"); err != nil {
		t.Fatal(err)
	}
	// The one before follows now.
	if err := primary.Restart(ctx, false); err != nil {
		t.Fatal(err)
	}
	if err := primary.Follow(ctx, standby.Addr()); err != nil {
		t.Fatal(err)
	}
	inStep(t, standby, primary)
	var n int
	if err := primary.pool.Load().QueryRow(ctx, "SELECT count(*) FROM locks").Scan(&n); err != nil || n != 1 {
		t.Error(n, err)
	}
}

func inStep(t *testing.T, primary, standby *server) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(5 * time.Millisecond) {
		has, err := primary.Progress(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		is, err := standby.Progress(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if is.Linked && is.Has == has.Has {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("the standby is at %+v, the primary at %+v", is, has)
		}
	}
}
