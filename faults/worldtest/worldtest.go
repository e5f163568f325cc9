// Package worldtest runs the same short test stories on every world, in virtual and in real time.
//
// A [Story] and a world come in; the test fails if the replies that clients receive or the recorded
// events differ from those of the story. The package is only for tests of worlds.
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

// The lock's key and lease in every story. A world must be created with both.
const (
	Key = "lock"
	TTL = 30 * time.Second
)

// Story is a list of steps and the events that they must produce. Each step names connections: A is
// a connection of client A to n1, A2 another of A to n1, and A@n2 a connection of A to n2. They
// exist before the story begins, except those that a step opens.
type Story struct {
	Name            string
	Nodes, Replicas int  // of the world; 0 nodes means 1
	Clock           bool // the story moves clocks
	Steps           []Step
	// Events are the expected events of Kinds, or of all kinds if Kinds is empty. Each line has one
	// event in the form of Line.
	Events string
	Kinds  []checker.Kind
}

// World is a world that runs a story. The world must not have begun.
type World struct {
	faults.World
	// Dial returns a function that connects a client to a node and completes any handshake. The
	// function may block while the world does not run.
	Dial func(client, node string) func() (net.Conn, error)
	// Events returns the events recorded so far.
	Events func() []checker.Event
	// Moment is a time in which everything happens that no fault stops.
	Moment time.Duration
}

// patience is the maximum duration of a step, in the world's time.
const patience = 20 * time.Second

// Play runs the story and closes the world.
func Play(t *testing.T, w World, story Story) {
	t.Helper()
	s := &stage{World: w, t: t, wires: map[string]*wire{}}
	defer func() {
		var slow interface{ Timeout() bool }
		if err := w.Close(); errors.As(err, &slow) && slow.Timeout() {
			t.Logf("Close: %v", err) // only the system's speed is at fault
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

// await lets the world run until so returns true, and fails the test after patience.
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
	sent time.Duration // when the last request was sent

	mu    sync.Mutex
	heard []byte
	at    time.Duration // when the last data of heard arrived
	err   error         // the error of Read that ended the connection; nil while it is open
}

// wire returns the connection of that name, and opens it on first use.
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

// Step is an action or a check in a story.
type Step struct {
	what  string
	on    string // a connection that the step needs
	opens string // a connection that the step opens
	do    func(*stage)
}

// Do applies faults.
func Do(list ...faults.Fault) Step {
	return Step{what: fmt.Sprint(list), do: func(s *stage) {
		for _, f := range list {
			if err := s.Apply(f); err != nil {
				s.errorf("%v: %v", f, err)
			}
		}
	}}
}

// Refuses checks that the fault is impossible now, and that the error contains why.
func Refuses(f faults.Fault, why string) Step {
	return Step{what: fmt.Sprint("not ", f), do: func(s *stage) {
		err := s.Apply(f)
		if !errors.Is(err, topology.ErrImpossible) || !strings.Contains(err.Error(), why) {
			s.errorf("%v; want %q", err, why)
		}
	}}
}

// Send sends requests of a client at once. Each request is a list of words separated by blanks; a _
// in a word stands for a blank.
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

// Request returns requests in RESP. See Send for their form.
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

// Hears checks the next data that a client receives. reply is in RESP with blanks for line breaks
// and _ for blanks. least, if given, is the minimum time from the client's last request to the
// data.
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

// Connects opens a connection that does not exist before the step.
func Connects(on string) Step {
	return Step{what: on + " connects", opens: on, do: func(s *stage) { s.wire(on) }}
}

// Leaves closes a client's connection.
func Leaves(on string) Step {
	return Step{what: on + " leaves", on: on, do: func(s *stage) { _ = s.wire(on).conn.Close() }}
}

// Silence checks that clients receive nothing for a Moment, and that their connections stay open.
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

// AwaitEvent waits until an event is recorded whose Line equals line.
func AwaitEvent(line string) Step {
	return Step{what: "told " + line, do: func(s *stage) {
		s.await("it is told", func() bool {
			return slices.ContainsFunc(s.Events(), func(e checker.Event) bool { return Line(e) == line })
		})
	}}
}

// Is waits until a client's state equals want, except for PausedFor. UnderWay is compared only as 0
// or 1, because a message behind another may not be visible yet.
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

// Met checks how many messages each order to the gate has matched so far, in the order in which the
// orders were applied.
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

// Lines returns the events of the given kinds, or of all kinds, one per line, without handshakes.
func Lines(events []checker.Event, kinds ...checker.Kind) string {
	var all []string
	for _, e := range events {
		if (len(kinds) == 0 || slices.Contains(kinds, e.Kind)) && !strings.HasPrefix(e.Command, "HELLO") && !strings.HasPrefix(e.Command, "AUTH") {
			all = append(all, Line(e))
		}
	}
	return strings.Join(all, "\n")
}

// Line returns an event as text without its times. A key's remaining lifetime is in seconds,
// rounded up to a multiple of 10.
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
