package harness

import (
	"encoding/hex"
	"hash/fnv"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/lockfault/lockfault/checker"
	"github.com/lockfault/lockfault/faults"
	"github.com/lockfault/lockfault/scenarios"
)

// Snapshot is the complete state of a cell when its script has reached its last line. If the
// snapshots of two cells of the same strategy are equal, and their scripts injected the same faults
// at the same times, then equal further steps have equal results: a client is a function of its
// observations, and a server a function of its contents.
type Snapshot struct {
	// Now is the time since the script began.
	Now     time.Duration
	Clients []ClientView // in the order of the script
	faults.Snapshot
	// Seen is the largest fencing token that the protected resource has received.
	Seen int64
}

// ClientView is the state of a client in a [Snapshot].
type ClientView struct {
	Name            string
	Paused, Crashed bool
	// Busy reports whether the client is executing a task. Holding reports whether the client
	// believes that it holds the lock.
	Busy, Holding bool
	// Observed is a 128-bit hash of all observations of the client in order. The observations, with
	// times to the millisecond, are replies, push messages, the results of its operations, and the
	// events of its process.
	Observed string
	// Watches is the node on which the client watches keys; empty if it watches none.
	Watches string
}

// PlaySnapshots runs a cell in virtual time like [Play]. PlaySnapshots also returns the snapshots
// before the steps on the given script lines, in the script's order, and the snapshot at the
// script's end. If the outcome is an error, some snapshots are missing.
func PlaySnapshots(t *testing.T, cell Cell, lines ...int) (Outcome, []Snapshot) {
	w := watch{lines: lines}
	cell.Place = nil
	outcome := play(t, cell, &w)
	return outcome, w.views
}

// watch holds the lines at which to take snapshots, and the snapshots. A nil watch takes none.
type watch struct {
	lines []int
	views []Snapshot
}

// before takes a snapshot before a step if the step's line is in the list.
func (w *watch) before(step scenarios.Step, s *runner) {
	if w != nil && slices.Contains(w.lines, step.Line) {
		w.views = append(w.views, s.snapshot())
	}
}

// end takes a snapshot at the end of the script.
func (w *watch) end(s *runner) {
	if w != nil && s.failure == nil {
		w.views = append(w.views, s.snapshot())
	}
}

// snapshot returns the current state of the cell.
func (s *runner) snapshot() Snapshot {
	v := Snapshot{Now: faults.Instant(s.world.Now()), Seen: s.register.seen}
	if viewer, ok := s.world.(faults.Snapshotter); ok {
		v.Snapshot = viewer.View()
	}
	s.observe()
	for _, name := range s.names {
		p, state := s.clients[name], s.world.Client(name)
		v.Clients = append(v.Clients, ClientView{
			Name: name, Paused: state.Paused, Crashed: state.Crashed,
			Busy: p.busy && !state.Crashed, Holding: p.holds > 0 && !state.Crashed, Observed: s.observed.hashes[name], Watches: s.observed.watches[name],
		})
	}
	return v
}

// observed holds the observations of each client so far. A fault of a node counts as an observation
// of every client: its order relative to a client's replies affects connections, streams and clocks
// in ways that no other field shows. A fault of a client's clock counts for that client. Requests
// of other clients on a node count while the client watches keys there. The zero value has no
// observations.
type observed struct {
	upto    int               // number of events that were processed
	hashes  map[string]string // of each client's observations in order
	watches map[string]string // the node on which the client watches keys
	buffer  []byte
}

// observe processes the events since the previous call.
func (s *runner) observe() {
	o := &s.observed
	if o.hashes == nil {
		o.hashes, o.watches = map[string]string{}, map[string]string{}
	}
	for i := o.upto; i < len(s.history.Events); i++ {
		e := &s.history.Events[i]
		switch e.Kind {
		case checker.Reply, checker.Push, checker.Invoke, checker.Return, checker.Lost, checker.Write,
			checker.Pause, checker.Resume, checker.Crash, checker.Restart, checker.Cancel:
			o.note(e.Client, e)
		case checker.Fault:
			for _, name := range s.names {
				if e.Node != "" || e.Client == name && strings.HasPrefix(e.Text, name+" clock") {
					o.note(name, e)
				}
			}
		case checker.Request:
			for _, name := range s.names {
				if name != e.Client && o.watches[name] == e.Node {
					o.note(name, e)
				}
			}
			switch command, _, _ := strings.Cut(e.Command, " "); command {
			case "WATCH":
				o.watches[e.Client] = e.Node
			case "UNWATCH", "EXEC", "DISCARD":
				delete(o.watches, e.Client)
			}
		}
	}
	o.upto = len(s.history.Events)
}

// note adds an event to a client's observations.
func (o *observed) note(client string, e *checker.Event) {
	b := append(o.buffer[:0], o.hashes[client]...)
	b = append(b, ' ')
	b = strconv.AppendInt(b, int64(faults.Instant(e.Time)), 10)
	for _, word := range [...]string{string(e.Kind), e.Node, string(e.Op), string(e.Result), faults.Untimed(e.Error), e.Command, e.Reply} {
		b = append(append(b, ' '), word...)
	}
	b = strconv.AppendInt(append(b, ' '), e.Token, 10)
	b = strconv.AppendBool(append(b, ' '), e.Accepted)
	b = append(append(b, ' '), e.Text...)
	o.buffer = b
	h := fnv.New128a()
	h.Write(b)
	o.hashes[client] = hex.EncodeToString(h.Sum(nil))
}
