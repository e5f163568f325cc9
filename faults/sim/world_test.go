package sim_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lockfault/lockfault/checker"
	"github.com/lockfault/lockfault/faults"
	"github.com/lockfault/lockfault/faults/sim"
	"github.com/lockfault/lockfault/internal/rediscli"
)

const (
	ttl   = 30 * time.Second
	trip  = time.Millisecond       // a round trip
	shake = 400 * time.Microsecond // maximum deviation of a round trip
)

var bg = context.Background()

// TestMain silences go-redis, which logs each refused connection.
func TestMain(m *testing.M) {
	redis.SetLogger(silence{})
	m.Run()
}

type silence struct{}

func (silence) Printf(context.Context, string, ...any) {}

// stage is a world with clients for a test.
type stage struct {
	*sim.World
	t       *testing.T
	events  []checker.Event
	closers []io.Closer
}

// play runs a test in a bubble with a world that has begun, and returns the events. The bubble
// checks that no goroutine is left when the world is closed.
func play(t *testing.T, cfg sim.Config, test func(s *stage)) []checker.Event {
	t.Helper()
	var events []checker.Event
	synctest.Test(t, func(t *testing.T) {
		s := &stage{t: t}
		cfg.Nodes, cfg.Lock, cfg.TTL = max(1, cfg.Nodes), faults.SingleKeyLock("lock"), ttl
		cfg.Record = func(e checker.Event) { s.events = append(s.events, e) }
		w, err := sim.New(cfg)
		if err != nil {
			t.Fatal(err)
		}
		s.World = w
		w.Begin()
		defer func() {
			if err := w.Close(); err != nil {
				t.Errorf("Close: %v", err)
			}
			for _, c := range s.closers {
				_ = c.Close()
			}
			time.Sleep(time.Minute) // time stops when the test returns, and go-redis sleeps before it looks
			events = s.events
		}()
		test(s)
	})
	return events
}

// client returns a go-redis client that never retries.
func client(dial func(context.Context, string, string) (net.Conn, error), options ...func(*redis.Options)) *redis.Client {
	o := rediscli.Options("127.0.0.1:6379")
	o.Dialer, o.PoolSize, o.ReadTimeout = dial, 64, 3*time.Second
	for _, option := range options {
		option(o)
	}
	return redis.NewClient(o)
}

// client returns a client's connection pool to a node.
func (s *stage) client(name, node string, options ...func(*redis.Options)) *redis.Client {
	c := client(func(ctx context.Context, _, _ string) (net.Conn, error) { return s.Dial(ctx, name, node) }, options...)
	s.closers = append(s.closers, c)
	return c
}

// dial returns a connection of a client without a client library.
func (s *stage) dial(name, node string) *wire {
	s.t.Helper()
	conn, err := s.Dial(bg, name, node)
	if err != nil {
		s.t.Fatal(err)
	}
	return &wire{Conn: conn, stage: s}
}

// task is an operation that a client runs in the background.
type task struct {
	stage *stage
	done  bool
	ended time.Duration
	err   error
	value any
}

// begin starts an operation of a client in the background.
func (s *stage) begin(do func() (any, error)) *task {
	work := &task{stage: s}
	go func() {
		value, err := do()
		work.value, work.err, work.ended, work.done = value, err, s.Now(), true
		s.Notify()
	}()
	s.run(0)
	return work
}

// wait waits until the task is done.
func (w *task) wait() *task {
	w.stage.t.Helper()
	if !w.stage.Run(time.Hour, func() bool { return w.done }) {
		w.stage.t.Fatal("still not done after an hour")
	}
	return w
}

// want waits for the task and compares its printed result.
func (w *task) want(value string) *task {
	w.stage.t.Helper()
	w.wait()
	if got := w.said(); got != value {
		w.stage.t.Errorf("got %s; want %s", got, value)
	}
	return w
}

func (w *task) said() string {
	switch {
	case !w.done:
		return "nothing yet"
	case w.err != nil:
		return w.err.Error()
	}
	return fmt.Sprint(w.value)
}

// do runs an operation of a client and waits for it.
func (s *stage) do(do func() (any, error)) *task {
	s.t.Helper()
	return s.begin(do).wait()
}

// command sends a command of a client and begins to wait for the answer.
func (s *stage) command(c redis.UniversalClient, words ...any) *task {
	return s.begin(func() (any, error) { return c.Do(bg, words...).Result() })
}

// run lets time pass.
func (s *stage) run(d time.Duration) { s.Run(d, func() bool { return false }) }

// apply applies faults.
func (s *stage) apply(list ...faults.Fault) {
	s.t.Helper()
	for _, f := range list {
		if err := s.Apply(f); err != nil {
			s.t.Fatalf("%s: %v", f, err)
		}
	}
}

// told returns the events of the given kinds, or of all kinds, one per line, without go-redis's
// handshake.
func (s *stage) told(kinds ...checker.Kind) string { return lines(s.events, kinds...) }

// forget discards the events so far.
func (s *stage) forget() { s.events = nil }

// want checks the events of some kinds since forget.
func (s *stage) want(want string, kinds ...checker.Kind) {
	s.t.Helper()
	var trimmed []string
	for line := range strings.Lines(want) {
		if line = strings.TrimSpace(line); line != "" {
			trimmed = append(trimmed, line)
		}
	}
	if got := s.told(kinds...); got != strings.Join(trimmed, "\n") {
		s.t.Errorf("got events\n%s\nwant\n%s", got, strings.Join(trimmed, "\n"))
	}
}

func lines(events []checker.Event, kinds ...checker.Kind) string {
	var all []string
	for _, e := range events {
		if (len(kinds) == 0 || slices.Contains(kinds, e.Kind)) && !strings.HasPrefix(e.Command, "HELLO") {
			all = append(all, line(e))
		}
	}
	return strings.Join(all, "\n")
}

// line returns an event as text without its times. A key's remaining lifetime is in seconds.
func line(e checker.Event) string {
	switch e.Kind {
	case checker.Request:
		return fmt.Sprintf("%s > %s %s", e.Client, e.Server, e.Command)
	case checker.Reply:
		return fmt.Sprintf("%s < %s %s = %s", e.Client, e.Node, e.Command, e.Reply)
	case checker.Push:
		return fmt.Sprintf("%s < %s %s", e.Client, e.Node, e.Reply)
	case checker.Held, checker.Passed, checker.Dropped:
		return strings.TrimSpace(fmt.Sprintf("%s %s %s %s", e.Kind, e.Client, e.Direction, e.Command))
	case checker.State:
		what := "gone"
		if e.Value != "" {
			what = e.Value
			if e.Expires != 0 {
				what += fmt.Sprintf(" for %.0fs", (e.Expires - e.Time).Seconds())
			}
		}
		return fmt.Sprintf("%s %s by %s", e.Server, what, strings.TrimSpace(string(e.Cause)+" "+e.Client))
	case checker.Fault:
		return "fault " + e.Text
	}
	return fmt.Sprintf("%s %s", e.Kind, e.Client)
}

// wire is a connection without a client library, which shows data that a library would hide.
type wire struct {
	net.Conn
	stage *stage
}

// send writes requests at once, each a list of words.
func (w *wire) send(requests ...string) {
	w.stage.t.Helper()
	var all strings.Builder
	for _, request := range requests {
		words := strings.Fields(request)
		fmt.Fprintf(&all, "*%d\r\n", len(words))
		for _, word := range words {
			fmt.Fprintf(&all, "$%d\r\n%s\r\n", len(word), word)
		}
	}
	if _, err := io.WriteString(w, all.String()); err != nil {
		w.stage.t.Errorf("writing %q: %v", requests, err)
	}
}

// receive starts to read until n bytes have arrived or the read fails.
func (w *wire) receive(n int) *task {
	return w.stage.begin(func() (any, error) {
		b := make([]byte, n)
		got, err := io.ReadFull(w, b)
		return string(b[:got]), err
	})
}
