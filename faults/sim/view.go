package sim

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/lockfault/lockfault/faults"
)

var _ faults.Viewer = (*World)(nil)

// View implements [faults.Viewer].
func (w *World) View() faults.View {
	w.mu.Lock()
	defer w.mu.Unlock()
	var v faults.View
	for _, s := range w.servers {
		seen := faults.ServerView{Name: s.Name, Up: s.Up, Paused: s.Paused, Leads: s.Leads()}
		seen.Data, seen.Next = w.data(s)
		v.Servers = append(v.Servers, seen)
	}
	for _, m := range w.top.Held() {
		about := m.About()
		command, _, _ := m.Said()
		v.Held = append(v.Held, faults.HeldView{Client: about.Client, Node: about.Node, Way: about.Way, Command: command})
	}
	return v
}

// data shows everything that a server holds, and says when the first of it will be
// gone. Callers hold w.mu.
func (w *World) data(s *redis) (text string, next time.Duration) {
	s.tick()
	names := s.mini.DB(0).Keys()
	slices.Sort(names)
	var b strings.Builder
	for _, name := range names {
		key := s.lookAt(name, w.began)
		fmt.Fprintf(&b, "%s %s %d", w.ledger.Name(name), key.Type, key.Expires.Round(time.Millisecond).Milliseconds())
		for _, word := range key.Words {
			b.WriteByte(' ')
			b.WriteString(w.ledger.Name(word))
		}
		b.WriteByte('\n')
		if key.Expires != 0 && (next == 0 || key.Expires < next) {
			next = key.Expires
		}
	}
	return b.String(), next
}
