// Package realtest gives tests a world of real servers whose clients are goroutines of the test. It
// collects the world's events and prints them. It is for tests only.
package realtest

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/lockfault/lockfault/checker"
	"github.com/lockfault/lockfault/faults"
	"github.com/lockfault/lockfault/faults/real"
)

// patience is how long a test waits for an expected event.
const patience = 3 * time.Minute

// A Stage is a world and the events that it recorded. Only the test's goroutine may use it.
type Stage struct {
	*real.World
	T      *testing.T
	Events []checker.Event
	// Clean, if not nil, replaces text that differs from run to run.
	Clean func(told string) string
}

// New makes a world that closes at the end of the test, and fails the test if anything in the world
// failed.
func New(t *testing.T, cfg real.Config) *Stage {
	t.Helper()
	s := &Stage{T: t}
	cfg.Record = func(e checker.Event) { s.Events = append(s.Events, e) }
	var err error
	if s.World, err = real.New(t.Context(), cfg); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := errors.Join(s.Close(), s.Err()); err != nil {
			t.Error(err)
		}
	})
	return s
}

// Start calls do in a goroutine, as a client, while the world runs. The returned channel receives
// the result.
func (s *Stage) Start(do func() error) chan error {
	done := make(chan error, 1)
	go func() {
		done <- do()
		s.Notify()
	}()
	return done
}

// End runs the world until a client is done, and returns the client's result.
func (s *Stage) End(done chan error) error {
	s.T.Helper()
	s.Await("a client is done", func() bool { return len(done) > 0 })
	return <-done
}

// Do calls do as a client, runs the world until do returns, and returns its result.
func (s *Stage) Do(do func() error) error {
	s.T.Helper()
	return s.End(s.Start(do))
}

// Must acts like Do, and fails the test on an error.
func (s *Stage) Must(do func() error) {
	s.T.Helper()
	if err := s.Do(do); err != nil {
		s.T.Fatal(err)
	}
}

// Await runs the world until a condition is true, and fails the test after patience.
func (s *Stage) Await(what string, is func() bool) {
	s.T.Helper()
	if !s.Run(patience, is) {
		s.T.Fatalf("it doesn't come to: %s\n%s", what, s.MessageLines(""))
	}
}

// Within repeats an action until it takes less than limit, and fails the test after patience: on a
// slow machine a single slow run proves nothing.
func (s *Stage) Within(limit time.Duration, do func()) {
	s.T.Helper()
	for first := time.Now(); ; {
		begun := time.Now()
		do()
		switch took := time.Since(begun); {
		case took < limit:
			return
		case time.Since(first) > patience:
			s.T.Fatalf("it took %v each time, and should take less than %v", took, limit)
		}
	}
}

// Inject applies faults, and fails the test on an error.
func (s *Stage) Inject(list ...faults.Fault) {
	s.T.Helper()
	for _, f := range list {
		if err := s.Apply(f); err != nil {
			s.T.Fatal(err)
		}
	}
}

// MessageLines returns the messages of one client, or of all clients if the name is empty, one per
// line and without pings.
func (s *Stage) MessageLines(client string) string {
	var b strings.Builder
	for _, e := range s.Events {
		if client != "" && e.Client != client || strings.Contains(e.Command+e.Reply, "PING") {
			continue
		}
		switch e.Kind {
		case checker.Request:
			fmt.Fprintf(&b, "%s > %s %s\n", e.Client, e.Server, e.Command)
		case checker.Reply, checker.Push:
			fmt.Fprintf(&b, "%s < %s %s = %s\n", e.Client, e.Kind, e.Command, e.Reply)
		case checker.Held, checker.Passed, checker.Dropped:
			fmt.Fprintf(&b, "%s %s %s %s\n", e.Client, e.Kind, e.Direction, e.Command)
		}
	}
	if s.Clean != nil {
		return s.Clean(b.String())
	}
	return b.String()
}

// Wants compares the messages of a client since the last comparison. Tabs in want are ignored.
func (s *Stage) Wants(client, want string) {
	s.T.Helper()
	s.compare("of "+client+" was told", s.MessageLines(client), want)
}

// Stands compares the states of the lock since the last comparison, as [States] prints them. The
// states are ordered by node, because the server that is asked first depends on what clients have
// found.
func (s *Stage) Stands(what, want string) {
	s.T.Helper()
	events := slices.Clone(s.Events)
	slices.SortStableFunc(events, func(a, b checker.Event) int { return strings.Compare(a.Node, b.Node) })
	s.compare(what, States(events), want)
}

func (s *Stage) compare(what, got, want string) {
	s.T.Helper()
	want = strings.ReplaceAll(strings.TrimSpace(want), "\t", "")
	if got := strings.TrimSpace(got); got != want {
		s.T.Errorf("%s\n%s\nwant\n%s", what, got, want)
	}
	s.Events = nil
}

// States prints the states of the lock on servers, one change per line. A line has the node, the
// owner, the value, the remaining time rounded to 10 s, and the cause.
func States(events []checker.Event) string {
	var b strings.Builder
	for _, e := range events {
		if e.Kind != checker.State {
			continue
		}
		whose := "free"
		if e.Owner != "" || e.Value != "" {
			whose = strings.TrimSpace(fmt.Sprintf("%s (%s)", e.Owner, e.Value))
		}
		if e.Expires != 0 {
			whose += " for " + fmt.Sprint((e.Expires - e.Time).Round(10*time.Second))
		}
		fmt.Fprintf(&b, "%s: %s by %s\n", e.Node, whose, strings.TrimSpace(string(e.Cause)+" "+e.Client))
	}
	return b.String()
}
