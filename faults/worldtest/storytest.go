// Package storytest plays short stories on the worlds, in virtual and in real
// time alike, for their tests: what clients send, what faults befall them,
// what they hear, and which events tell of it. A [Story] and a world come in;
// the test fails where they don't fit.
package worldtest

import (
	"errors"
	"fmt"
	"math"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/lockfault/lockfault/checker"
	"github.com/lockfault/lockfault/faults"
	"github.com/lockfault/lockfault/faults/topology"
)

// The lock in every story: a world must be made for this key and lease.
const (
	Key = "lock"
	TTL = 30 * time.Second
)

// A Story is a list of steps and what is told of them. Each step names
// connections: A is one of client A to n1, A2 another one, and A@n2 one to n2.
// They are there before the story begins.
type Story struct {
	Name            string
	Nodes, Replicas int  // as the world must have them; 0 nodes means 1
	Clock           bool // clocks are moved
	Steps           []Step
	// Events are those of the kinds, or of all kinds if there are none, as
	// Line writes them, one a line.
	Events string
	Kinds  []checker.Kind
}

// A World is one to play a story in, before it has begun.
type World struct {
	faults.World
	// Dial returns a function that connects a client to a node, past any
	// handshake, and may block as long as the world doesn't run.
	Dial func(client, node string) func() (net.Conn, error)
	// Events returns what was recorded so far.
	Events func() []checker.Event
	// Moment is a while in which everything happens that nothing stops.
	Moment time.Duration
}

// patience is how long a step may take, in the world's time.
const patience = 20 * time.Second

// Play plays the story and closes the world.
func Play(t *testing.T, w World, story Story) {
	t.Helper()
	s := &stage{World: w, t: t, wires: map[string]*wire{}}
	defer func() {
		var slow interface{ Timeout() bool }
		if err := w.Close(); errors.As(err, &slow) && slow.Timeout() {
			t.Logf("Close: %v", err) // nothing is wrong but how long the system takes
		} else if err != nil {
			t.Errorf("Close: %v", err)
		}
		for _, wire := range s.wires {
			_ = wire.conn.Close()
		}
		s.readers.Wait()
	}()
	later := map[string]bool{}
	for _, step := range story.Steps {
		later[step.opens] = true
	}
	for _, step := range story.Steps {
		if step.on != "" && !later[step.on] {
			s.wire(step.on)
		}
	}
	w.Begin()
	for i, step := range story.Steps {
		s.step = fmt.Sprintf("step %d, %s", i+1, step.what)
		step.do(s)
		if t.Failed() {
			t.Logf("told so far:\n%s", s.lines(nil))
			return
		}
	}
	want := trim(story.Events)
	s.Run(patience, func() bool { return s.lines(story.Kinds) == want })
	s.Run(w.Moment, func() bool { return false })
	if got := s.lines(story.Kinds); got != want {
		t.Errorf("got events\n%s\nwant\n%s", got, want)
	}
}

type stage struct {
	World
	t       *testing.T
	step    string
	wires   map[string]*wire
	readers sync.WaitGroup
}

func (s *stage) errorf(format string, args ...any) {
	s.t.Helper()
	s.t.Errorf(s.step+": "+format, args...)
}

// await lets the world run until something is so.
func (s *stage) await(what string, so func() bool) {
	s.t.Helper()
	if !s.Run(patience, so) {
		s.errorf("waited %v in vain: %s", patience, what)
	}
}

func (s *stage) lines(kinds []checker.Kind) string { return Lines(s.Events(), kinds...) }

// wire is a client's connection.
type wire struct {
	conn net.Conn
	sent time.Duration // when the last request set out

	mu    sync.Mutex
	heard []byte
	at    time.Duration // when that came
	err   error         // why there is no more
}

// wire returns the connection of that name.
func (s *stage) wire(name string) *wire {
	s.t.Helper()
	if w := s.wires[name]; w != nil {
		return w
	}
	client, node, found := strings.Cut(name, "@")
	if !found {
		node = faults.NodeName(0)
	}
	dial := s.Dial(strings.TrimRight(client, "0123456789"), node)
	w := &wire{}
	ends := make(chan error, 1)
	go func() {
		conn, err := dial()
		w.conn = conn
		ends <- err
		s.Notify()
	}()
	if !s.Run(patience, func() bool { return len(ends) > 0 }) {
		s.t.Fatalf("connecting %s: it takes longer than %v", name, patience)
	}
	if err := <-ends; err != nil {
		s.t.Fatalf("connecting %s: %v", name, err)
	}
	s.wires[name] = w
	s.readers.Go(func() { w.read(s) })
	return w
}

func (w *wire) read(s *stage) {
	buf := make([]byte, 4096)
	for {
		n, err := w.conn.Read(buf)
		w.mu.Lock()
		w.heard, w.at = append(w.heard, buf[:n]...), s.Now()
		w.err = err
		w.mu.Unlock()
		s.Notify()
		if err != nil {
			return
		}
	}
}

// A Step is something that happens in a story.
type Step struct {
	what  string
	on    string // a connection that it needs
	opens string // one that isn't there before it
	do    func(*stage)
}

// Do does faults.
func Do(list ...faults.Fault) Step {
	return Step{what: fmt.Sprint(list), do: func(s *stage) {
		for _, f := range list {
			if err := s.Apply(f); err != nil {
				s.errorf("%v: %v", f, err)
			}
		}
	}}
}

// Refuses checks that nobody can do that now, and that the error says so.
func Refuses(f faults.Fault, why string) Step {
	return Step{what: fmt.Sprint("not ", f), do: func(s *stage) {
		err := s.Apply(f)
		if !errors.Is(err, topology.ErrImpossible) || !strings.Contains(err.Error(), why) {
			s.errorf("%v; want %q", err, why)
		}
	}}
}

// Send lets a client send requests in one go, each a list of words with blanks
// between them, where a _ in a word stands for a blank.
func Send(on string, requests ...string) Step {
	return Step{what: on + " says " + strings.Join(requests, ", "), on: on, do: func(s *stage) {
		w := s.wire(on)
		w.sent = s.Now()
		done := make(chan error, 1)
		go func() {
			_, err := w.conn.Write(Request(requests...))
			done <- err
			s.Notify()
		}()
		s.await("its request is written", func() bool { return len(done) > 0 })
		if err := <-done; err != nil {
			s.errorf("%v", err)
		}
	}}
}

// Request writes requests as they go over the wire; see Send.
func Request(requests ...string) []byte {
	var all []byte
	for _, request := range requests {
		words := strings.Fields(request)
		all = fmt.Appendf(all, "*%d\r\n", len(words))
		for _, word := range words {
			word = strings.ReplaceAll(word, "_", " ")
			all = fmt.Appendf(all, "$%d\r\n%s\r\n", len(word), word)
		}
	}
	return all
}

// Hears checks what a client hears next, in the form that it has on the wire
// with blanks in place of the ends of lines and a _ for a blank, and that it takes at least that
// long from its last request on.
func Hears(on, reply string, least ...time.Duration) Step {
	return Step{what: on + " hears " + reply, on: on, do: func(s *stage) {
		w, want := s.wire(on), strings.NewReplacer(" ", "\r\n", "_", " ").Replace(reply)+"\r\n"
		s.Run(patience, func() bool {
			w.mu.Lock()
			defer w.mu.Unlock()
			return len(w.heard) >= len(want) || w.err != nil
		})
		w.mu.Lock()
		defer w.mu.Unlock()
		if got := string(w.heard[:min(len(want), len(w.heard))]); got != want {
			s.errorf("it hears %q and then %v", got, w.err)
			return
		}
		w.heard = w.heard[len(want):]
		for _, least := range least {
			if took := w.at - w.sent; took < least {
				s.errorf("it came after %v; want %v", took, least)
			}
		}
	}}
}

// Ends checks that a client's connection is reset.
func Ends(on string) Step { return ends(on, "is reset", "reset by peer") }

// Closes checks that a client's connection is closed in order.
func Closes(on string) Step { return ends(on, "is closed", "EOF") }

func ends(on, how, why string) Step {
	return Step{what: on + " " + how, on: on, do: func(s *stage) {
		w := s.wire(on)
		ended := func() error {
			w.mu.Lock()
			defer w.mu.Unlock()
			return w.err
		}
		s.await("its connection ends", func() bool { return ended() != nil })
		if err := ended(); err == nil || !strings.Contains(err.Error(), why) {
			s.errorf("it ended with %v", err)
		}
	}}
}

// Connects opens a connection, which is not there before.
func Connects(on string) Step {
	return Step{what: on + " connects", opens: on, do: func(s *stage) { s.wire(on) }}
}

// Leaves closes a client's connection.
func Leaves(on string) Step {
	return Step{what: on + " leaves", on: on, do: func(s *stage) { _ = s.wire(on).conn.Close() }}
}

// Silence checks that clients hear nothing, and are not reset, for a moment.
func Silence(on ...string) Step {
	return Step{what: "silence", do: func(s *stage) {
		s.Run(s.Moment, func() bool { return false })
		for _, on := range on {
			w := s.wire(on)
			w.mu.Lock()
			if len(w.heard) > 0 || w.err != nil {
				s.errorf("%s hears %q and then %v", on, w.heard, w.err)
			}
			w.mu.Unlock()
		}
	}}
}

// AwaitEvent waits until an event is told, as Line writes it.
func AwaitEvent(line string) Step {
	return Step{what: "told " + line, do: func(s *stage) {
		s.await("it is told", func() bool {
			return slices.ContainsFunc(s.Events(), func(e checker.Event) bool { return Line(e) == line })
		})
	}}
}

// Is waits until a client's state is as it should, apart from spans of time.
// UnderWay says only whether there is something: a message behind another may
// not be in sight yet.
func Is(client string, want faults.ClientState) Step {
	return Step{what: fmt.Sprintf("%s is %+v", client, want), do: func(s *stage) {
		state := func() faults.ClientState {
			state := s.Client(client)
			state.PausedFor, state.UnderWay = 0, min(state.UnderWay, 1)
			return state
		}
		if !s.Run(patience, func() bool { return state() == want }) {
			s.errorf("it is %+v", state())
		}
	}}
}

// Met checks how many messages each order to the gate has met so far, in the
// order in which they were given.
func Met(want ...int) Step {
	return Step{what: fmt.Sprintf("met %v", want), do: func(s *stage) {
		if got := s.Met(); !slices.Equal(got, want) {
			s.errorf("the orders have met %v", got)
		}
	}}
}

// Wait lets time pass.
func Wait(span time.Duration) Step {
	return Step{what: "wait", do: func(s *stage) { s.Run(span, func() bool { return false }) }}
}

// Lines writes the events of some kinds, or of all, one a line, without
// handshakes.
func Lines(events []checker.Event, kinds ...checker.Kind) string {
	var all []string
	for _, e := range events {
		if (len(kinds) == 0 || slices.Contains(kinds, e.Kind)) && !strings.HasPrefix(e.Command, "HELLO") && !strings.HasPrefix(e.Command, "AUTH") {
			all = append(all, Line(e))
		}
	}
	return strings.Join(all, "\n")
}

// Line writes an event without its times, but with how long the key will live,
// in seconds, rounded up to tens.
func Line(e checker.Event) string {
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
				what += fmt.Sprintf(" for %.0fs", 10*math.Ceil((e.Expires-e.Time).Seconds()/10))
			}
		}
		return fmt.Sprintf("%s %s by %s", e.Server, what, strings.TrimSpace(string(e.Cause)+" "+e.Client))
	case checker.Fault:
		return "fault " + e.Text
	}
	return fmt.Sprintf("%s %s", e.Kind, e.Client)
}

// trim removes blanks around lines, and empty lines.
func trim(text string) string {
	var lines []string
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); line != "" {
			lines = append(lines, line)
		}
	}
	return strings.Join(lines, "\n")
}
