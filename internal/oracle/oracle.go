// Package oracle checks the witnesses of package checker a second time, by definitions written as
// plainly as possible. Each definition looks at the whole history again, and none shares code with
// the checker. A history and a witness come in; nil or the reason why the witness proves nothing
// goes out.
//
// The package is for tests and takes at least quadratic time. The only import from this module is
// checker.
package oracle

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/lockfault/lockfault/checker"
)

// Witness returns nil if the witness proves its anomaly in the history, and otherwise an error that
// names the part of the definition that does not hold. The history must be well-formed: a client
// has at most one call under way, and each Return has its Invoke. Witness is safe for concurrent
// use.
func Witness(h checker.History, w checker.Witness) error {
	if len(w.Events) < 2 || !slices.IsSorted(w.Events) || len(slices.Compact(slices.Clone(w.Events))) < len(w.Events) {
		return fmt.Errorf("oracle: %s: events %v are not two or more in ascending order", w.Anomaly, w.Events)
	}
	if w.Events[0] < 0 || w.Events[len(w.Events)-1] >= len(h.Events) {
		return fmt.Errorf("oracle: %s: events %v are not in a history of %d", w.Anomaly, w.Events, len(h.Events))
	}
	prove, ok := map[checker.Anomaly]func(run, []int) error{
		checker.Overlap:        overlap,
		checker.StaleWrite:     staleWrite,
		checker.RefusedWrite:   refusedWrite,
		checker.TokenOrder:     tokenOrder,
		checker.ForeignRelease: foreignRelease,
		checker.ForeignExtend:  foreignExtend,
		checker.LostLock:       lostLock,
		checker.Keyless:        keyless,
		checker.Unreleasable:   unreleasable,
		checker.StuckLock:      stuckLock,
		checker.NotReleased:    notReleased,
		checker.Ghost:          ghost,
		checker.IdleTraffic:    idleTraffic,
		checker.SelfDeadlock:   selfDeadlock,
		checker.Deadlock:       deadlock,
		checker.Starvation:     starvation,
		checker.Unavailable:    unavailable,
	}[w.Anomaly]
	if !ok {
		return fmt.Errorf("oracle: %q is no anomaly", w.Anomaly)
	}
	r, events := relevant(h, w.Events)
	if err := prove(r, events); err != nil {
		return fmt.Errorf("oracle: %s %v: %w", w.Anomaly, w.Events, err)
	}
	return nil
}

// need returns nil if ok, and otherwise an error that names the missing condition.
func need(ok bool, what string) error {
	if ok {
		return nil
	}
	return errors.New("not so: " + what)
}

// run is a history prepared for lookups: its relevant events, its calls and the names of its
// clients.
type run struct {
	checker.History
	all   []call
	names []string
}

// relevant returns the run of a history, without the messages and notes that no definition
// mentions, and the positions of the named events in it.
func relevant(h checker.History, named []int) (r run, at []int) {
	r.Meta = h.Meta
	for i, e := range h.Events { // events after End are not part of the run
		if e.Kind == checker.End {
			h.Events = h.Events[:i+1]
			break
		}
	}
	for i, e := range h.Events {
		isNamed := slices.Contains(named, i)
		switch e.Kind {
		case checker.Request, checker.Push, checker.Held, checker.Passed, checker.Dropped, checker.Step, checker.Measure:
			if !isNamed && i != len(h.Events)-1 { // the last event gives the end of the history
				continue
			}
		}
		if isNamed {
			at = append(at, len(r.Events))
		}
		r.Events = append(r.Events, e)
		if e.Client != "" && !slices.Contains(r.names, e.Client) {
			r.names = append(r.names, e.Client)
		}
	}
	r.all = r.findCalls()
	return r, at
}

func (r run) at(i int) checker.Event { return r.Events[min(i, len(r.Events)-1)] }

func (r run) tolerance() time.Duration { return r.Meta.TTL / 100 }
func (r run) patience() time.Duration  { return r.Meta.TTL + r.Meta.Grace }

// hold returns the event that began the client's hold before event i, or -1.
func (r run) hold(client string, i int) int {
	began, depth, until, lapsed := -1, 0, time.Duration(0), false
	begin := func(j int, e checker.Event) {
		if r.Meta.HonourValidity && e.Until > 0 {
			until = e.Until
		}
		if began = j; until > 0 && until <= e.Time {
			began, until, lapsed = -1, 0, true
		}
	}
	for j, e := range r.Events[:min(i+1, len(r.Events))] {
		if began >= 0 && until > 0 && e.Time >= until {
			began, until, lapsed = -1, 0, true
		}
		if j == i || e.Client != client {
			continue
		}
		granted := e.Kind == checker.Return && e.Result == checker.OK
		switch {
		case granted && (e.Op == checker.Acquire || e.Op == checker.TryAcquire):
			if began < 0 {
				depth, until, lapsed = 0, 0, false
				begin(j, e)
			} else if r.Meta.HonourValidity && e.Until > 0 {
				until = e.Until
			}
			depth++
		case granted && e.Op == checker.Extend && r.Meta.HonourValidity && e.Until > 0:
			if began >= 0 {
				until = e.Until
			} else if lapsed {
				begin(j, e)
			}
		case e.Kind == checker.Invoke && e.Op == checker.Release && depth > 0:
			if depth--; depth == 0 {
				began, until, lapsed = -1, 0, false
			}
		case e.Kind == checker.Lost && began >= 0:
			began, until, lapsed = -1, 0, false
		case e.Kind == checker.Crash || e.Kind == checker.Restart:
			began, depth, until, lapsed = -1, 0, 0, false
		}
	}
	return began
}

// begins reports whether event i begins a hold of its client.
func (r run) begins(i int) bool { return r.upTo(i+1).hold(r.at(i).Client, i+1) == i }

// acquires reports whether event i is the return of a successful acquire.
func (r run) acquires(i int) bool {
	e := r.at(i)
	return e.Kind == checker.Return && e.Result == checker.OK && (e.Op == checker.Acquire || e.Op == checker.TryAcquire)
}

// heldByOthers reports whether another client holds the lock before some event i with from < i <=
// to.
func (r run) heldByOthers(client string, from, to int) bool {
	for i := from + 1; i <= to; i++ {
		for _, other := range r.names {
			if other != client && r.hold(other, i) >= 0 {
				return true
			}
		}
	}
	return false
}

// heldByAnybody is heldByOthers for all clients.
func (r run) heldByAnybody(from, to int) bool { return r.heldByOthers("", from, to) }

// key returns the last State of a server before event i; a zero Event if the server has none.
func (r run) key(server string, i int) checker.Event {
	for j := i - 1; j >= 0; j-- {
		if e := r.Events[j]; e.Kind == checker.State && e.Server == server {
			return e
		}
	}
	return checker.Event{}
}

// tenure returns the State that began the current ownership of the key on a server, before event i.
// An ownership that a failover transferred began on the server that counted before.
func (r run) tenure(server string, i int) int {
	first, owner := -1, r.key(server, i).Owner
	for j := i - 1; j >= 0; j-- {
		e := r.Events[j]
		if e.Kind != checker.State || e.Server != server {
			continue
		}
		if e.Owner != owner {
			break
		}
		first = j
		if e.Cause != checker.ByFailover || owner == "" || r.split(e.Node, j) {
			continue
		}
		before := r.counting(j)
		if slices.Contains(before, server) {
			continue
		}
		for _, other := range slices.Backward(before) {
			if key := r.key(other, j); key.Node == e.Node && key.Owner == owner && key.Value == e.Value {
				return r.tenure(other, j)
			}
		}
	}
	return first
}

// ownedSince returns the server that counts before event i and has the ownership that began with
// the State gave; "" if no server has it.
func (r run) ownedSince(gave, i int) string {
	for _, server := range r.counting(i) {
		if r.tenure(server, i) == gave {
			return server
		}
	}
	return ""
}

// countedSince reports whether the ownership that began with the State gave has been on a counting
// server ever since, up to event i.
func (r run) countedSince(gave, i int) bool {
	for j := gave + 1; j < i; j++ {
		if e := r.at(j); e.Node == r.at(gave).Node && (e.Kind == checker.Fault || e.Kind == checker.State) && r.ownedSince(gave, j+1) == "" {
			return false
		}
	}
	return r.ownedSince(gave, i) != ""
}

// split reports whether a node is split before event i.
func (r run) split(node string, i int) bool {
	split := false
	for _, e := range r.Events[:i] {
		if e.Kind != checker.Fault || e.Node != node {
			continue
		}
		switch n := e.Node; {
		case strings.HasPrefix(e.Text, n+" split"):
			split = true
		case strings.HasPrefix(e.Text, n+" failover"), strings.HasPrefix(e.Text, n+" join"):
			split = false
		}
	}
	return split
}

// counting returns the servers that count before event i: those that act as their node for some
// client.
func (r run) counting(i int) []string {
	counts := map[string][]string{}
	primary := map[string]string{}
	for j, e := range r.Events[:i] {
		switch n := e.Node; e.Kind {
		case checker.Fault:
			if strings.HasPrefix(e.Text, n+" join") && primary[n] != "" {
				counts[n] = slices.DeleteFunc(counts[n], func(s string) bool { return s != primary[n] })
			}
		case checker.State:
			if e.Cause == checker.ByFailover {
				primary[n] = e.Server
				if !r.split(n, j) {
					counts[n] = nil
				}
			}
			speaks := e.Cause == checker.ByCommand || e.Cause == checker.ByFailover || len(counts[n]) == 0 && e.Cause != checker.ByReplication
			if speaks && !slices.Contains(counts[n], e.Server) {
				counts[n] = append(counts[n], e.Server)
			}
		}
	}
	var all []string
	for _, servers := range counts {
		all = append(all, servers...)
	}
	return all
}

// owns returns the counting servers on which the client owns the key before event i.
func (r run) owns(client string, i int) []string {
	var on []string
	for _, server := range r.counting(i) {
		if r.key(server, i).Owner == client {
			on = append(on, server)
		}
	}
	return on
}

// call is an operation, from its Invoke to its Return or the crash of its client; without either,
// end is the number of events.
type call struct {
	client      string
	op          checker.Op
	invoke, end int
	from, to    time.Duration
	result      checker.Result
	crashed     bool
	gaveUp      int // the event at which its caller gave up, or -1
}

// cancelled reports whether the caller gave up.
func (c call) cancelled() bool { return c.gaveUp >= 0 }

func (c call) takes() bool { return c.op == checker.Acquire || c.op == checker.TryAcquire }

func (r run) findCalls() []call {
	var all []call
	for i, e := range r.Events {
		if e.Kind != checker.Invoke {
			continue
		}
		c := call{client: e.Client, op: e.Op, invoke: i, gaveUp: -1, from: e.Time, end: len(r.Events), to: r.at(len(r.Events)).Time}
		for j, then := range r.Events[i:] {
			if then.Client == e.Client && then.Kind == checker.Cancel && c.gaveUp < 0 {
				c.gaveUp = i + j
			}
			if then.Client == e.Client && (then.Kind == checker.Return && then.Call == e.Call || then.Kind == checker.Crash || then.Kind == checker.Restart) {
				c.end, c.to, c.result, c.crashed = i+j, then.Time, then.Result, then.Kind != checker.Return
				break
			}
		}
		all = append(all, c)
	}
	return all
}

// callOf returns the call whose Invoke or Return is event i.
func (r run) callOf(i int) (call, bool) {
	for _, c := range r.all {
		if c.invoke == i || c.end == i && !c.crashed {
			return c, true
		}
	}
	return call{}, false
}

// latest returns the client's last acquire or try that was called before event i, and whether it
// was under way then.
func (r run) latest(client string, i int) (last call, underWay, ok bool) {
	for _, c := range r.all {
		if c.client == client && c.takes() && c.invoke < i {
			last, underWay, ok = c, c.end > i, true
		}
	}
	return last, underWay, ok
}

// paused reports whether the client is paused before event i.
func (r run) paused(client string, i int) bool {
	paused := false
	for _, e := range r.Events[:i] {
		if e.Client == client {
			switch e.Kind {
			case checker.Pause:
				paused = true
			case checker.Resume, checker.Crash, checker.Restart:
				paused = false
			}
		}
	}
	return paused
}

// pausedIn reports whether the client was paused during a part of the call.
func (r run) pausedIn(c call) bool {
	for i := c.invoke + 1; i <= c.end; i++ {
		if r.paused(c.client, i) {
			return true
		}
	}
	return false
}

// upTo returns the run without event i and the events after it; all keeps the calls of the whole
// history.
func (r run) upTo(i int) run {
	r.Events = r.Events[:i]
	return r
}

// longest returns the longest continuous time within the call in which the caller is not paused,
// has not given up, and ok(i) is true for the time between events i-1 and i.
func (r run) longest(c call, ok func(i int) bool) time.Duration {
	var best, sum time.Duration
	if c.cancelled() {
		c.end = c.gaveUp
	}
	for i := c.invoke + 1; i <= c.end && i < len(r.Events); i++ {
		if !ok(i) || r.paused(c.client, i) {
			sum = 0
			continue
		}
		sum += r.Events[i].Time - r.Events[i-1].Time
		best = max(best, sum)
	}
	return best
}

// Overlaps reports whether holds of two clients overlap anywhere, by trying every event and every
// client.
func Overlaps(h checker.History) bool {
	r, _ := relevant(h, nil)
	for i, e := range r.Events {
		if r.begins(i) && r.heldByOthers(e.Client, i-1, i) {
			return true
		}
	}
	return false
}
