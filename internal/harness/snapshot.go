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

// A Snapshot is how a cell stands when its script has come to the last line, seen by
// somebody who sees everything. Two cells of one strategy whose views are equal, and
// whose scripts did the same faults at the same times, go on alike when the same is
// done to them: a client is a function of what it has observed, and a server of what
// it holds.
type Snapshot struct {
	// Now is the time since the script began.
	Now     time.Duration
	Clients []ClientView // in the order of the script's
	faults.Snapshot
	// Seen is the largest fencing token that the protected resource has seen.
	Seen int64
}

// A ClientView is a client in a [Snapshot].
type ClientView struct {
	Name            string
	Paused, Crashed bool
	// Busy says that it is in the middle of something, Holding that it believes
	// that it holds the lock.
	Busy, Holding bool
	// Observed is a hash, of 128 bits, of all that it observed, in its order, with the times to
	// the millisecond: answers, messages, what its operations returned, and what
	// became of its process.
	Observed string
	// Watches is the node on which it watches keys; empty if on none.
	Watches string
}

// PlaySnapshots plays a cell as [Play] does, in virtual time, and returns how it stands before the
// steps on some lines of its script, in the script's order, and last at its end. There are fewer views
// if the outcome is an error.
func PlaySnapshots(t *testing.T, cell Cell, lines ...int) (Outcome, []Snapshot) {
	w := watch{lines: lines}
	cell.Place = nil
	outcome := play(t, cell, &w)
	return outcome, w.views
}

// A watch says when somebody wants to know how a cell stands, and what was seen. Nobody
// does if it is nil.
type watch struct {
	lines []int
	views []Snapshot
}

// before looks at the stage before a step.
func (w *watch) before(step scenarios.Step, s *runner) {
	if w != nil && slices.Contains(w.lines, step.Line) {
		w.views = append(w.views, s.snapshot())
	}
}

// end looks at the stage when the script has ended.
func (w *watch) end(s *runner) {
	if w != nil && s.failure == nil {
		w.views = append(w.views, s.snapshot())
	}
}

// snapshot returns how the cell stands now.
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

// observed is what each client has observed until now. What befell a node
// counts as observed by everybody: whether it did so before or after what a
// client heard makes a difference for connections, streams and clocks that nothing else
// shows. What befell its own clock counts, too. So does what others did on a node while a
// client watches keys there. The zero value has seen nothing.
type observed struct {
	upto    int               // events were looked at
	hashes  map[string]string // of what a client observed, in its order
	watches map[string]string // the node on which it watches
	buffer  []byte
}

// observe looks at what was recorded since the last time.
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

// note adds an event to what a client has observed.
func (o *observed) note(client string, e *checker.Event) {
	b := append(o.buffer[:0], o.hashes[client]...)
	b = append(b, ' ')
	b = strconv.AppendInt(b, int64(faults.Instant(e.Time)), 10)
	for _, word := range [...]string{string(e.Kind), e.Node, string(e.Op), string(e.Result), e.Error, e.Command, e.Reply} {
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
