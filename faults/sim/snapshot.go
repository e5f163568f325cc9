package sim

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/alicebob/miniredis/v2/server"

	"github.com/lockfault/lockfault/faults"
	"github.com/lockfault/lockfault/faults/topology"
)

var _ faults.Snapshotter = (*World)(nil)

// View implements [faults.Snapshotter].
func (w *World) View() faults.Snapshot {
	w.mu.Lock()
	defer w.mu.Unlock()
	var v faults.Snapshot
	for _, s := range w.servers {
		seen := faults.ServerView{Name: s.Name, Up: s.Up, Paused: s.Paused, Leads: s.Leads()}
		seen.Data, seen.Next = w.data(s)
		seen.Owner, seen.Known = w.ledger.Owner(s.Name)
		seen.Knows, seen.Talks = w.knows(s), s.talks()
		v.Servers = append(v.Servers, seen)
	}
	for _, m := range w.top.Held() {
		v.Held = append(v.Held, heldView(m))
	}
	for _, name := range slices.Sorted(maps.Keys(w.clients)) {
		for _, m := range w.clients[name].door {
			v.Unread = append(v.Unread, heldView(m))
		}
	}
	v.Wrote, v.Owners = w.ledger.Wrote(), w.ledger.Doubtful()
	return v
}

func heldView(m topology.Message) faults.HeldView {
	about := m.About()
	command, reply, sent := m.Said()
	return faults.HeldView{Client: about.Client, Node: about.Node, Way: about.Way, Command: command, Reply: reply, Sent: faults.Instant(sent)}
}

// talks returns the clients to which a server may send data without a new request.
func (s *redis) talks() []string {
	var names []string
	for _, c := range s.conns {
		if !c.gone && (c.subscribed || c.tracker.on || c.waiter != nil) {
			names = append(names, c.client.Name)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// data returns a text of all data of a server, and the earliest expiry in database 0 since Begin,
// or 0 if no key expires. Callers hold w.mu.
func (w *World) data(s *redis) (text string, next time.Duration) {
	s.tick()
	names := s.mini.DB(0).Keys()
	slices.Sort(names)
	var b strings.Builder
	for _, name := range names {
		key := s.lookAt(name, w.began)
		gone := faults.Instant(key.Expires)
		fmt.Fprintf(&b, "%s %s %d", w.ledger.Name(name), key.Type, gone.Milliseconds())
		for _, word := range key.Words {
			b.WriteByte(' ')
			b.WriteString(w.ledger.Name(word))
		}
		b.WriteByte('\n')
		if s.mini.DB(0).Type(name) == "stream" {
			b.WriteString(w.stream(s, name))
		}
		if gone != 0 && (next == 0 || gone < next) {
			next = gone
		}
	}
	for i := 1; i < databases && s.several; i++ {
		db := s.mini.DB(i)
		names := db.Keys() // sorted
		for _, name := range names {
			fmt.Fprintf(&b, "%d %s %d\n", i, w.ledger.Name(name), faults.Instant(db.TTL(name)).Milliseconds())
		}
		if len(names) > 0 {
			s.mini.Select(i) // Dump uses the selected database; clients have their own selection
			fmt.Fprintf(&b, "%s\n", w.ledger.Name(s.mini.Dump()))
			s.mini.Select(0)
		}
	}
	return b.String(), next
}

// databases is the number of databases of a server, the default of redis-server.
const databases = 16

// groupNames matches the names of groups in a reply to XINFO GROUPS.
var groupNames = regexp.MustCompile(`\$4\r\nname\r\n\$\d+\r\n(.*?)\r\n`)

// stream returns a text of a stream and its consumer groups, with their positions and pending
// entries. Callers hold w.mu.
func (w *World) stream(s *redis, name string) string {
	var peer server.Peer
	ask := func(words ...string) []byte { return s.ask(&peer, words...) }
	groups := ask("XINFO", "GROUPS", name)
	text := w.ledger.Name(string(ask("XRANGE", name, "-", "+"))) + " " + w.ledger.Name(string(groups))
	for _, group := range groupNames.FindAllSubmatch(groups, -1) {
		text += " " + w.ledger.Name(string(ask("XPENDING", name, string(group[1]), "-", "+", "1000000")))
	}
	return text + "\n"
}

// knows returns a text of a server's state other than its data. Callers hold w.mu.
func (w *World) knows(s *redis) string {
	var b strings.Builder
	if s.Full {
		b.WriteString("full\n")
	}
	for _, sum := range slices.Sorted(maps.Keys(s.scripts.known)) {
		fmt.Fprintf(&b, "script %s\n", sum)
	}
	for _, wait := range s.waiters {
		about := wait.request.About()
		fmt.Fprintf(&b, "waits %s %s\n", about.Client, w.ledger.Command(about.Client, about.Words))
	}
	for _, m := range s.door {
		fmt.Fprintf(&b, "at the door %+v\n", heldView(m))
	}
	in := &s.in
	if in.of == nil {
		return b.String()
	}
	fmt.Fprintf(&b, "follows %s %t %t %+v\n", in.of.Name, in.connected, in.joining != nil, in.shape)
	for _, sh := range in.sent {
		fmt.Fprintf(&b, "comes at %d %s\n", faults.Instant(sh.arrives.due.Sub(w.began)).Milliseconds(), w.show(sh.effect))
	}
	for i, list := range [...][]effect{in.waiting, in.door, in.missed} {
		for _, e := range list {
			fmt.Fprintf(&b, "%s %s\n", [...]string{"stopped", "arrived", "missed"}[i], w.show(e))
		}
	}
	return b.String()
}

// show returns a text of an effect.
func (w *World) show(e effect) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%t", e.full)
	for _, key := range slices.Sorted(maps.Keys(e.keys)) {
		fmt.Fprintf(&b, " %s", w.ledger.Name(key))
		r := e.keys[key]
		if r == nil {
			b.WriteString(" gone")
			continue
		}
		for _, word := range r.pairs {
			fmt.Fprintf(&b, " %s", w.ledger.Name(word))
		}
		if !r.until.IsZero() {
			fmt.Fprintf(&b, " %d", faults.Instant(r.until.Sub(w.began)).Milliseconds())
		}
	}
	return b.String()
}
