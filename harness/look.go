package harness

import (
	"encoding/hex"
	"fmt"
	"hash/fnv"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/lockfault/lockfault/checker"
	"github.com/lockfault/lockfault/faults"
	"github.com/lockfault/lockfault/scenarios"
)

// A View is how a cell stands when its script has come to the last line, seen by
// somebody who sees everything. Two cells of one strategy whose views are equal, and
// whose scripts did the same faults at the same times, go on alike when the same is
// done to them: a client is a function of what it has observed, and a server of what
// it holds.
type View struct {
	// Now is the time since the script began.
	Now     time.Duration
	Clients []ClientView // in the order of the script's
	faults.View
	// Seen is the largest fencing token that the protected resource has seen.
	Seen int64
}

// A ClientView is a client in a [View].
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

// Look plays a cell as [Play] does, in virtual time, and returns how it stands before the
// steps on some lines of its script, in the script's order, and last at its end. There are fewer views
// if the outcome is an error.
func Look(t *testing.T, cell Cell, lines ...int) (Outcome, []View) {
	w := watch{lines: lines}
	cell.Place = nil
	outcome := play(t, cell, &w)
	return outcome, w.views
}

// A watch says when somebody wants to know how a cell stands, and what was seen. Nobody
// does if it is nil.
type watch struct {
	lines []int
	views []View
}

// before looks at the stage before a step.
func (w *watch) before(step scenarios.Step, s *stage) {
	if w != nil && slices.Contains(w.lines, step.Line) {
		w.views = append(w.views, s.look())
	}
}

// end looks at the stage when the script has ended.
func (w *watch) end(s *stage) {
	if w != nil && s.failure == nil {
		w.views = append(w.views, s.look())
	}
}

// look returns how the cell stands now.
func (s *stage) look() View {
	v := View{Now: faults.Instant(s.world.Now()), Seen: s.register.seen}
	if viewer, ok := s.world.(faults.Viewer); ok {
		v.View = viewer.View()
	}
	observed, watches := s.observed()
	for _, name := range s.names {
		p, state := s.clients[name], s.world.Client(name)
		v.Clients = append(v.Clients, ClientView{
			Name: name, Paused: state.Paused, Crashed: state.Crashed,
			Busy: p.busy && !state.Crashed, Holding: p.holds > 0 && !state.Crashed, Observed: observed[name], Watches: watches[name],
		})
	}
	return v
}

// observed returns, for each client, a hash of what it has observed. What befell a node
// counts as observed by everybody: whether it did so before or after what a
// client heard makes a difference for connections, streams and clocks that nothing else
// shows. What befell its own clock counts, too. So does what others did on a node while a
// client watches keys there; watches says who does where.
func (s *stage) observed() (hashes, watches map[string]string) {
	hashes, watches = map[string]string{}, map[string]string{}
	h := fnv.New128a()
	note := func(client string, e checker.Event) {
		h.Reset()
		fmt.Fprintf(h, "%s %d %s %s %s %s %s %s %s %d %t %s", hashes[client], faults.Instant(e.Time),
			e.Kind, e.Node, e.Op, e.Result, e.Error, e.Command, e.Reply, e.Token, e.Accepted, e.Text)
		hashes[client] = hex.EncodeToString(h.Sum(nil))
	}
	for _, e := range s.history.Events {
		switch e.Kind {
		case checker.Reply, checker.Push, checker.Invoke, checker.Return, checker.Lost, checker.Write,
			checker.Pause, checker.Resume, checker.Crash, checker.Restart, checker.Cancel:
			note(e.Client, e)
		case checker.Fault:
			for _, name := range s.names {
				if e.Node != "" || e.Client == name && strings.HasPrefix(e.Text, name+" clock") {
					note(name, e)
				}
			}
		case checker.Request:
			for _, name := range s.names {
				if name != e.Client && watches[name] == e.Node {
					note(name, e)
				}
			}
			switch command, _, _ := strings.Cut(e.Command, " "); command {
			case "WATCH":
				watches[e.Client] = e.Node
			case "UNWATCH", "EXEC", "DISCARD":
				delete(watches, e.Client)
			}
		}
	}
	return hashes, watches
}
