package oracle

import (
	"errors"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/lockfault/lockfault/checker"
)

func overlap(r run, w []int) error {
	if len(w) != 2 {
		return errors.New("want two events")
	}
	a, b := r.at(w[0]).Client, r.at(w[1]).Client
	return errors.Join(
		need(a != b, "two clients"),
		need(r.begins(w[1]), "the second begins a hold"),
		need(r.hold(a, w[1]) == w[0], "the first began one that lasts"),
	)
}

func staleWrite(r run, w []int) error {
	last := w[len(w)-1]
	e := r.at(last)
	other := w[len(w)-2]
	if err := need(e.Kind == checker.Write && e.Accepted && r.begins(other) && r.at(other).Client != e.Client, "an accepted write after another's hold began"); err != nil {
		return err
	}
	mine := -1
	for i := range last {
		if r.at(i).Client == e.Client && (r.begins(i) || r.acquires(i) && r.hold(e.Client, i) >= 0) {
			mine = i
		}
	}
	if len(w) == 2 {
		return need(mine < 0 && r.hold(r.at(other).Client, last) == other, "another holds, the writer never did")
	}
	c, _ := r.callOf(other)
	token := e.Token
	if token == 0 {
		token = r.at(mine).Token
	}
	granted := r.at(other).Token != 0 && r.at(other).Token < token && c.invoke < mine
	return need(mine == w[0] && mine < other && !granted, "the other began later than the writer's latest acquire")
}

// did calls prove for the State that the last event of a witness stands for: the event itself or,
// for a request, one of the changes directly after it.
func (r run) did(w []int, prove func(at int) error) error {
	if len(w) != 2 {
		return errors.New("want two events")
	}
	first := r.at(w[1])
	if first.Kind == checker.State {
		return prove(w[1])
	}
	errs := []error{errors.New("a request that changed nothing")}
	for at := w[1] + 1; at < len(r.Events); at++ {
		e := r.at(at)
		if e.Kind != checker.State || e.Client != first.Client || e.Node != first.Node {
			break
		}
		err := prove(at)
		if err == nil {
			return nil
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// foreign checks that the State at is a command's change to a key that another client had owned
// since the State gave. foreign returns the key before and after.
func (r run) foreign(gave, at int) (before, after checker.Event, err error) {
	after = r.at(at)
	before = r.key(after.Server, at)
	return before, after, need(after.Cause == checker.ByCommand && after.Client != "" &&
		before.Owner != "" && before.Owner != after.Client && r.tenure(after.Server, at) == gave, "a command on another's key")
}

func foreignRelease(r run, w []int) error {
	return r.did(w, func(at int) error {
		before, after, err := r.foreign(w[0], at)
		same := before.Value == after.Value && before.Owner == after.Owner
		gone := after.Value == "" && after.Owner == ""
		from := max(before.Expires, r.granted(after.Server, w[0], at))
		shorter := same && before.Expires != 0 && after.Expires != 0 && from-after.Expires > r.tolerance()
		return errors.Join(err, need(gone || shorter, "removed or shortened"))
	})
}

func foreignExtend(r run, w []int) error {
	return r.did(w, func(at int) error {
		if r.at(w[0]).Kind == checker.Return {
			return r.recreated(w[0], at)
		}
		before, after, err := r.foreign(w[0], at)
		same := before.Value == after.Value && before.Owner == after.Owner
		longer := after.Expires == 0 || after.Expires > before.Expires && after.Expires-r.granted(after.Server, w[0], at) > r.tolerance()
		return errors.Join(err, need(same && before.Expires != 0 && longer, "prolonged"))
	})
}

// granted returns the expiry that the owner of a server's key, or the server's clock, had set last
// before event at. The State gave began the ownership. Changes by other clients do not count,
// unless they gave a key without an expiry one.
func (r run) granted(server string, gave, at int) time.Duration {
	granted := r.at(gave).Expires
	for i := gave + 1; i < at; i++ {
		s, was := r.at(i), r.key(server, i)
		switch {
		case s.Kind != checker.State || s.Server != server:
		case was.Expires == 0 || granted == 0 || s.Expires == 0:
			granted = s.Expires
		case s.Cause == checker.ByClock && s.Value == was.Value:
			granted += s.Expires - was.Expires
		case s.Cause == checker.ByCommand && s.Client != "" && s.Client != s.Owner:
		default:
			granted = s.Expires
		}
	}
	return granted
}

// recreated checks that the State at created again a key that its client had lost. The client had
// acquired at the Return acquired.
func (r run) recreated(acquired, at int) error {
	e := r.at(at)
	c, underWay, ok := r.latest(e.Client, at)
	had := false
	for i := c.invoke + 1; i < at; i++ {
		s := r.at(i)
		had = had || s.Kind == checker.State && s.Node == e.Node &&
			(s.Owner == e.Client || r.key(s.Server, i).Owner == e.Client)
	}
	return errors.Join(
		need(e.Cause == checker.ByCommand && e.Owner == e.Client, "its own command made it the owner"),
		need(r.key(e.Server, at).Owner != e.Client, "it was not the owner"),
		need(ok && !underWay && c.result == checker.OK && c.end == acquired, "it was not acquiring, but had acquired"),
		need(had, "it had owned the key since"),
		need(!r.sentWhile(at, func(sent time.Duration) bool {
			return slices.ContainsFunc(r.all, func(c call) bool {
				return c.client == e.Client && c.takes() && c.from <= sent && sent < c.to
			})
		}), "its command had not set out while it was acquiring"),
	)
}

// sentWhile reports whether the command of the State at was sent at a time for which is returns
// true; false if the history has no send times.
func (r run) sentWhile(at int, is func(time.Duration) bool) bool {
	timed := slices.ContainsFunc(r.Events, func(e checker.Event) bool { return e.Kind == checker.Request && e.Sent != 0 })
	e := r.at(at)
	for at--; timed && at >= 0 && r.at(at).Client == e.Client && r.at(at).Node == e.Node; at-- {
		switch r.at(at).Kind {
		case checker.Request:
			return is(r.at(at).Sent)
		case checker.State:
		default:
			return false
		}
	}
	return false
}

func lostLock(r run, w []int) error {
	if len(w) != 3 {
		return errors.New("want three events")
	}
	took := w[2]
	e := r.at(took)
	// The acquire's return is either of the others: a slow node may grant the key after it.
	acquired, gave := w[1], w[0]
	if r.at(acquired).Kind != checker.Return {
		acquired, gave = gave, acquired
	}
	client := r.at(acquired).Client
	cause := e.Cause
	if e.Kind == checker.Fault {
		cause = checker.ByReplication // a join
	}
	lost := false
	for _, server := range r.owns(client, took) {
		due := time.Duration(0) // as granted
		for i := r.tenure(server, took); i < took; i++ {
			s := r.at(i)
			if s.Kind != checker.State || s.Server != server {
				continue
			}
			if s.Cause != checker.ByClock || s.Value != r.key(server, i).Value || r.key(server, i).Owner != client {
				due = s.Expires
			}
		}
		lost = lost || r.tenure(server, took) == gave && (due == 0 || due-e.Time > r.tolerance())
	}
	return errors.Join(
		need(r.hold(client, took) == acquired, "the client holds"),
		need(cause != checker.ByCommand && cause != checker.ByExpiry, "neither a command nor expiry"),
		need(lost, "it owned the key, and its lease was not over"),
		need(len(r.owns(client, took+1)) == 0, "it owns the key nowhere any more"),
	)
}

func unreleasable(r run, w []int) error {
	if len(w) != 3 {
		return errors.New("want three events")
	}
	c, _ := r.callOf(w[2])
	acquired, replaced := w[0], w[1]
	if r.at(acquired).Kind != checker.Return { // the value was there before the acquire's return
		acquired, replaced = replaced, acquired
	}
	begin, _ := r.callOf(acquired)
	if begin.op == checker.Extend { // after a lapse, the acquire is the previous one
		begin = call{invoke: acquired}
		for _, other := range r.all {
			if other.end == acquired {
				begin = other
			}
		}
	}
	grant := time.Duration(-1)
	for i := range c.invoke {
		e := r.at(i)
		switch {
		case e.Client != c.client:
		case e.Kind == checker.Return && e.Result == checker.OK && e.Op != checker.Release:
			grant = e.Time
		case e.Kind == checker.Crash || e.Kind == checker.Restart:
			grant = -1
		}
	}
	executed := c.from // the last request of the release
	for i := c.invoke; i < w[2]; i++ {
		if e := r.at(i); e.Kind == checker.Request && e.Client == c.client {
			executed = e.Time
		}
	}
	s := r.at(replaced)
	key := r.key(s.Server, w[2])
	return errors.Join(
		need(!c.cancelled(), "its caller did not give up"),
		need(c.op == checker.Release && (c.result == checker.Fail || c.result == checker.Unknown), "a release that failed"),
		need(grant >= 0 && executed < grant+r.Meta.TTL, "within the lease"),
		need(r.hold(c.client, c.invoke) == acquired, "the holder's"),
		need(s.Kind == checker.State && s.Cause == checker.ByCommand && s.Client != c.client && s.Client != "" &&
			s.Value != "" && s.Owner != c.client && r.key(s.Server, replaced).Owner == c.client, "another replaced its value"),
		need(begin.invoke < replaced && replaced < w[2], "since it acquired"),
		need(!r.heldByOthers(c.client, w[2]-1, w[2]), "no other client holds"),
		need(key.Value != "" && key.Owner != c.client, "the key is still there, and another's"),
	)
}

func ghost(r run, w []int) error {
	if len(w) != 2 {
		return errors.New("want two events")
	}
	ret, gave := w[0], w[1]
	if r.at(ret).Kind != checker.Return {
		ret, gave = gave, ret
	}
	c, _ := r.callOf(ret)
	s := r.at(gave)
	errs := errors.Join(
		need(c.takes() && c.result == checker.Fail, "an acquire that failed"),
		need(r.hold(c.client, c.invoke) < 0 && r.hold(c.client, ret) < 0, "its client holds nothing"),
		need(s.Kind == checker.State && s.Cause == checker.ByCommand && s.Client == c.client && s.Owner == c.client, "its own command gave it the key"),
		need(r.tenure(s.Server, gave+1) == gave && gave > c.invoke, "since it was called"),
		need(!r.sentWhile(gave, func(sent time.Duration) bool { return sent < c.from }), "by a command that had not set out before that"),
	)
	if gave < ret {
		return errors.Join(errs, need(r.countedSince(gave, ret), "it has the key still"))
	}
	last, _, _ := r.latest(c.client, gave)
	return errors.Join(errs, need(last == c, "it has not tried again"))
}

func idleTraffic(r run, w []int) error {
	if len(w) < 4 {
		return errors.New("want a request that was needed, what came last, and three requests")
	}
	repeats := w[len(w)-3:]
	client, first, last := r.at(repeats[0]).Client, r.at(repeats[0]), repeats[2]
	digits := regexp.MustCompile(`[0-9]+`)
	text := digits.ReplaceAllString(first.Command, "#")
	is := func(i int) bool {
		e := r.at(i)
		return e.Kind == checker.Request && e.Client == client && digits.ReplaceAllString(e.Command, "#") == text
	}
	busy := func(i int) bool {
		if r.hold(client, i) >= 0 {
			return true
		}
		return slices.ContainsFunc(r.all, func(c call) bool { return c.client == client && c.invoke < i && i < c.end })
	}
	needed, idle := false, true
	for _, i := range w[:len(w)-3] {
		needed = needed || is(i) && busy(i)
	}
	for i := last - 1; i >= 0 && r.at(i).Time >= first.Time-2*r.Meta.TTL; i-- {
		switch e := r.at(i); {
		case busy(i), e.Kind == checker.Fault:
			idle = false
		case e.Client == client && e.Kind != checker.State && e.Kind != checker.Reply && !slices.Contains(repeats, i):
			idle = false
		}
	}
	return errors.Join(
		need(is(repeats[0]) && is(repeats[1]) && is(repeats[2]), "the same request three times"),
		need(needed, "it was sent before while its client held or waited"),
		need(idle, "its client was idle for two leases before the first of them"),
	)
}

func keyless(r run, w []int) error {
	if len(w) != 2 {
		return errors.New("want two events")
	}
	c, _ := r.callOf(w[1])
	return errors.Join(
		need(c.invoke == w[0] && c.end == w[1] && r.begun(c), "an acquire that succeeded, of a client that held nothing"),
		need(!r.keyed(c), "no server had a key meanwhile"),
		need(slices.ContainsFunc(r.all, func(c call) bool { return r.begun(c) && r.keyed(c) }) ||
			r.Meta.Service == "" && slices.ContainsFunc(r.Events, func(e checker.Event) bool { return e.Kind == checker.Fault && e.Node != "" }) && !slices.ContainsFunc(r.Events[c.invoke:c.end], func(e checker.Event) bool {
				return e.Kind == checker.Reply && e.Client == c.client && !strings.HasPrefix(e.Reply, "(error)")
			}), "another such acquire had a key, or no server replied"),
	)
}

func notReleased(r run, w []int) error {
	if len(w) == 2 {
		c, _ := r.callOf(w[1])
		return need(c.op == checker.Release && c.invoke == w[0] && c.end == w[1] && r.refusedForGood(c), "a release that a server refuses for good")
	}
	if len(w) != 4 {
		return errors.New("want four events")
	}
	rel, ok := call{}, false
	for _, i := range w {
		if c, of := r.callOf(i); of && c.op == checker.Release && c.end == i {
			rel, ok = c, true
		}
	}
	gave := slices.IndexFunc(w, func(i int) bool { return r.at(i).Kind == checker.State })
	if !ok || gave < 0 {
		return errors.New("not so: a release and the change that gave the key")
	}
	gave = w[gave]
	got, x := r.at(gave), rel.client
	var kept call
	for _, i := range w {
		if c, of := r.callOf(i); of && c.takes() && c.client != x && c.invoke == i {
			kept = c
		}
	}
	// When the releaser's key ended, or when the releaser acquired again.
	end := len(r.Events)
	for i := gave + 1; i < len(r.Events); i++ {
		e := r.at(i)
		if e.Kind == checker.State && e.Server == got.Server && e.Owner != x || i > rel.end && e.Kind == checker.Invoke && e.Client == x && (e.Op == checker.Acquire || e.Op == checker.TryAcquire) {
			end = i
			break
		}
	}
	until := r.at(end).Time
	changed := false
	for i := rel.invoke + 1; i < rel.end; i++ {
		e := r.at(i)
		changed = changed || e.Kind == checker.State && e.Server == got.Server && e.Cause == checker.ByCommand && e.Client == x
	}
	waits := min(until, r.at(kept.end).Time) - max(r.at(rel.end).Time, kept.from)
	refused := kept.result == checker.Fail && kept.invoke > rel.end && kept.end < end && !kept.cancelled()
	return errors.Join(
		need((rel.result == checker.OK || rel.result == checker.Fail) && r.hold(x, rel.invoke) >= 0 && r.hold(x, rel.invoke+1) < 0, "a release that ended a hold and returned ok or fail"),
		need(got.Cause == checker.ByCommand && got.Owner == x && gave < rel.invoke && end > rel.end, "the key was the releaser's before and after"),
		need(!changed, "the release did not change it"),
		need(kept.client != "" && !kept.crashed && kept.invoke < end && kept.end > rel.end, "another client's acquire after that"),
		need(refused || r.Meta.TTL > 0 && waits >= r.Meta.TTL/3, "it was refused, or waited"),
		need(!r.heldByAnybody(max(kept.invoke, rel.end), min(kept.end, end)-1), "nobody held meanwhile"),
	)
}

// begun reports whether a call is an acquire that succeeded when its client held nothing.
func (r run) begun(c call) bool {
	return c.takes() && c.result == checker.OK && r.hold(c.client, c.end) < 0
}

// keyed reports whether any server had a key at some time during a call.
func (r run) keyed(c call) bool {
	for i := c.invoke; i < c.end; i++ {
		for _, e := range r.Events[:i+1] {
			if e.Kind == checker.State && r.key(e.Server, i+1).Value != "" {
				return true
			}
		}
	}
	return false
}

func selfDeadlock(r run, w []int) error {
	c, _ := r.callOf(w[1])
	long := r.Meta.Bound > 0 && r.longest(c, func(int) bool { return true }) >= r.Meta.Bound
	return errors.Join(
		need(len(w) == 3 && c.takes() && c.invoke == w[1] && min(c.end, len(r.Events)-1) == w[2], "an acquire"),
		need(r.hold(c.client, c.invoke) == w[0], "called by the holder"),
		need(!c.crashed && c.result != checker.OK, "did not succeed"),
		need(c.result != "" || !r.paused(c.client, len(r.Events)), "not for standing still"),
		need(c.result != "" && !c.cancelled() || long, "it returned, and not because its caller gave up, or took long"),
		need(!r.heldByOthers(c.client, c.invoke, c.end), "nobody else held"),
	)
}

func stuckLock(r run, w []int) error {
	c := r.waiter(w)
	at := slices.IndexFunc(w, func(i int) bool { return r.at(i).Kind == checker.State })
	if at < 0 {
		return errors.New("no key")
	}
	gave := w[at] // any other State renewed the key
	server := r.ownedSince(gave, c.end)
	key := r.key(server, c.end)
	free, freed := r.at(gave).Time, -1
	for _, end := range r.endings() {
		if end.at <= c.end {
			free, freed = max(free, end.t), end.at
			if end.lapsed {
				freed--
			}
		}
	}
	renewed := false
	for i := max(freed, gave) + 1; i < c.end; i++ {
		e, was := r.at(i), r.key(server, i)
		renewed = renewed || e.Kind == checker.State && e.Server == server && e.Cause == checker.ByCommand && e.Owner == was.Owner &&
			e.Value == was.Value && was.Expires != 0 && (e.Expires == 0 || e.Expires > was.Expires) && !r.extending(i)
	}
	owner, underWay, _ := r.latest(key.Owner, c.end)
	heard := c.result == checker.Fail
	for i := c.invoke; i < c.end && i < len(r.Events); i++ {
		heard = heard || r.at(i).Kind == checker.Reply && r.at(i).Client == c.client
	}
	return errors.Join(
		need(c.takes() && !c.crashed && c.result != checker.OK, "an acquire that did not succeed"),
		need(heard, "a server answered it"),
		need(!r.pausedIn(c) && !c.cancelled(), "its caller did not stand still, or give up"),
		need(key.Owner != "", "the key is there"),
		need(key.Expires == 0 || renewed, "it would never go"),
		need(!r.heldByAnybody(c.end-1, c.end), "nobody holds"),
		need(c.to-free >= r.patience(), "nobody has for long"),
		need(!underWay || owner.result != checker.OK, "its owner is not about to succeed"),
	)
}

// extending reports whether the command of the State at belongs to a call of extend.
func (r run) extending(at int) bool {
	return slices.ContainsFunc(r.all, func(c call) bool {
		during := func(sent time.Duration) bool { return c.from <= sent && sent < c.to }
		return c.client == r.at(at).Client && c.op == checker.Extend && (c.invoke < at && at < c.end || r.sentWhile(at, during))
	})
}

// ending is the end of a client's hold at event at; release is the call that ended it, if a release
// did.
type ending struct {
	client  string
	at      int // or before event at, if the validity had lapsed by then
	t       time.Duration
	lapsed  bool
	release call
}

func (r run) endings() []ending {
	var all []ending
	for i, e := range r.Events {
		for _, client := range r.names {
			before := r.upTo(i)
			if before.hold(client, i) < 0 {
				continue
			}
			end := ending{client: client, at: i, t: e.Time}
			switch {
			case r.hold(client, i) < 0: // the validity that it published last is over
				end.lapsed = true
				for _, ret := range before.Events {
					if ret.Client == client && ret.Kind == checker.Return && ret.Result == checker.OK && ret.Until > 0 {
						end.t = ret.Until
					}
				}
			case r.upTo(i+1).hold(client, i+1) >= 0:
				continue
			case e.Kind == checker.Invoke:
				end.release, _ = r.callOf(i)
			}
			all = append(all, end)
		}
	}
	return all
}

// deadlock expects the invokes of the members' acquires, and the event that ended the standstill last.
func deadlock(r run, w []int) error {
	last := w[len(w)-1]
	var members []string
	for _, i := range w[:len(w)-1] {
		if c, ok := r.callOf(i); ok && c.takes() && c.invoke == i {
			members = append(members, c.client)
		}
	}
	slices.Sort(members)
	members = slices.Compact(members)
	from := last
	for from > 0 && r.standstill(members, from-1) {
		from--
	}
	if err := errors.Join(need(len(members) >= 2, "two clients"), need(from < last, "they waited for one another until then"),
		need(!r.heldByAnybody(from, last), "nobody held")); err != nil {
		return err
	}
	e := r.at(last)
	long := e.Time - r.at(from).Time
	if r.Meta.Bound > 0 && long >= r.Meta.Bound {
		return nil
	}
	gaveUp := false // its parts, since its acquire was about to fail
	if c, under, _ := r.latest(e.Client, last); e.Kind == checker.State && e.Cause == checker.ByCommand && under && c.takes() && slices.Contains(members, e.Client) {
		gaveUp = c.result == checker.Fail || c.result == checker.Unknown
		gaveUp = gaveUp && slices.Contains(checker.Parts(r.key(e.Server, last), r.Meta.Clients), e.Client)
		for i := last + 1; i < c.end && i < len(r.Events); i++ {
			x := r.at(i)
			if x.Kind == checker.State && x.Cause == checker.ByCommand && x.Client == e.Client && slices.Contains(checker.Parts(x, r.Meta.Clients), e.Client) {
				gaveUp = false
			}
		}
	}
	return errors.Join(
		need(long >= r.Meta.TTL/3, "it lasted for a third of the TTL"),
		need(e.Kind == checker.Return && e.Result != checker.OK || e.Kind == checker.State && e.Cause == checker.ByExpiry || gaveUp,
			"an acquire failed, or a part expired"),
	)
}

// standstill reports whether, after event i, the members and nobody else had a part of the lock each and
// an acquire under way, were not paused and did not hold.
func (r run) standstill(members []string, i int) bool {
	latest := map[string]checker.Event{}
	for _, e := range r.Events[:i+1] {
		if e.Kind == checker.State {
			latest[e.Node+" "+e.Server] = e
		}
	}
	var owners []string
	for _, e := range latest {
		owners = append(owners, checker.Parts(e, r.Meta.Clients)...)
	}
	since := func(client string) int { // when it got the first of its parts
		begun := i
		for at := i; at >= 0; at-- {
			if !r.hasPart(client, at) {
				break
			}
			begun = at
		}
		return begun
	}
	slices.Sort(owners)
	if !slices.Equal(slices.Compact(owners), members) {
		return false
	}
	for _, client := range members {
		c, _, ok := r.latest(client, i+1)
		if !ok || c.end <= i || !c.takes() || r.paused(client, i+1) || r.hold(client, c.invoke) >= 0 || since(client) < c.invoke {
			return false
		}
	}
	return true
}

// hasPart reports whether a client has a part of the lock after event i.
func (r run) hasPart(client string, i int) bool {
	latest := map[string]checker.Event{}
	for _, e := range r.Events[:i+1] {
		if e.Kind == checker.State {
			latest[e.Node+" "+e.Server] = e
		}
	}
	for _, e := range latest {
		if slices.Contains(checker.Parts(e, r.Meta.Clients), client) {
			return true
		}
	}
	return false
}

// waiter returns the acquire that the witness ends with, or that never returned.
func (r run) waiter(w []int) call {
	for _, i := range slices.Backward(w) {
		if c, ok := r.callOf(i); ok && c.takes() && (i == c.invoke || slices.Contains(w, c.invoke)) {
			return c
		}
	}
	return call{}
}

func starvation(r run, w []int) error {
	// The first Return is the beginning of the hold, and the first Invoke of another client is the
	// waiter's; either may come first.
	holder := slices.IndexFunc(w, func(i int) bool { return r.at(i).Kind == checker.Return })
	if holder < 0 {
		return errors.New("want a holder")
	}
	holder = w[holder]
	var c call
	for _, i := range slices.Backward(w) {
		if e := r.at(i); e.Kind == checker.Invoke && e.Client != r.at(holder).Client {
			c, _ = r.callOf(i)
		}
	}
	if !c.takes() || c.crashed {
		return errors.New("want an acquire that waited")
	}
	name := r.at(holder).Client
	waited := r.longest(c, func(i int) bool { return r.upTo(i).hold(name, i) == holder })
	return errors.Join(
		need(name != c.client, "two clients"),
		need(r.Meta.Bound > 0 && waited >= r.Meta.Bound, "one hold covers the bound"),
	)
}

func unavailable(r run, w []int) error {
	c, _ := r.callOf(w[0])
	if c.takes() && r.refusedForGood(c) {
		return nil
	}
	if err := need(len(w) <= 2 && c.takes() && c.invoke == w[0] && !c.crashed && r.hold(c.client, c.invoke) < 0, "an acquire of one who does not hold"); err != nil {
		return err
	}
	if !r.doubtful() && r.haunted(c) {
		return errors.New("a ghost was in the way")
	}
	idle := r.longest(c, func(i int) bool { return !r.heldByAnybody(i-1, i) })
	if r.Meta.Bound > 0 && idle >= r.Meta.Bound {
		return nil
	}
	inWay := r.heldByOthers(c.client, c.invoke, c.end)
	for _, other := range r.all {
		meets := other.client != c.client && other.invoke < c.end && other.end > c.invoke
		inWay = inWay || other.takes() && other.cancelled() && meets
		switch {
		case other.takes() && other.result == checker.OK:
			inWay = inWay || meets
		case other.takes() && (other.result == checker.Unknown || other.crashed):
			began := other.invoke < c.invoke || c.result == checker.Fail && other.invoke < c.end
			inWay = inWay || began && other.to+r.patience() > c.to
		}
	}
	for _, end := range r.endings() {
		releasing := end.release
		if releasing.result == checker.OK {
			inWay = inWay || end.client != c.client && releasing.invoke < c.end && releasing.end > c.invoke
			continue
		}
		inWay = inWay || end.at < c.invoke && max(end.t, releasing.to)+r.patience() > c.to
	}
	return errors.Join(
		need(c.result == checker.Fail || c.result == checker.Unknown, "it failed, or nobody held for the bound"),
		need(!r.pausedIn(c) && !c.cancelled(), "its caller did not stand still, or give up"),
		need(!inWay, "nobody was in the way"),
	)
}

// refusedForGood reports whether a server that refuses the lock for good refused the call: it ended by
// a definite error, as did two others of its kind (acquires, or releases) at least that returned after
// the last success, of two clients at least and over a TTL at least.
func (r run) refusedForGood(c call) bool {
	alike := func(other call) bool {
		return c.takes() && other.takes() || c.op == checker.Release && other.op == checker.Release
	}
	if !alike(c) || c.end >= len(r.Events) || c.result == checker.OK {
		return false
	}
	prefix := checker.DefiniteError(r.at(c.end).Error)
	if prefix == "" {
		return false
	}
	var first time.Duration
	clients, calls := map[string]bool{}, 0
	for i := range c.end + 1 {
		other, ok := r.callOf(i)
		switch {
		case !ok || other.end != i || !alike(other) || other.result == "":
		case other.result == checker.OK:
			clients, calls = map[string]bool{}, 0
		case checker.DefiniteError(r.at(i).Error) == prefix:
			if calls == 0 {
				first = other.to
			}
			calls++
			clients[other.client] = true
		}
	}
	return calls >= 3 && len(clients) >= 2 && c.to-first >= r.Meta.TTL
}

// haunted reports whether the key of a ghost existed during the call.
func (r run) haunted(c call) bool {
	for _, failed := range r.all {
		if !failed.takes() || failed.result != checker.Fail {
			continue
		}
		for i := failed.invoke + 1; i < c.end; i++ {
			s := r.at(i)
			if s.Kind != checker.State || s.Client != failed.client || s.Owner != failed.client ||
				ghost(r, []int{min(i, failed.end), max(i, failed.end)}) != nil {
				continue
			}
			if i > c.invoke || r.countedSince(i, c.invoke+1) {
				return true
			}
		}
	}
	return false
}

// refusedWrite expects three events: the writer's latest acquire and the accepted write with the
// larger token, in any order, and the refused write.
func refusedWrite(r run, w []int) error {
	if len(w) != 3 {
		return errors.New("want three events")
	}
	last, mine, newer := w[2], w[0], w[1]
	if r.at(mine).Kind != checker.Return {
		mine, newer = newer, mine
	}
	e, client := r.at(last), r.at(last).Client
	given := r.at(mine).Token
	token := e.Token
	if token == 0 {
		token = given
	}
	latest := -1
	for i := range last {
		if r.at(i).Client == client && r.acquires(i) {
			latest = i
		}
	}
	nodes := 0
	for _, node := range r.Meta.Nodes {
		all := true
		for i := mine; i <= last; i++ {
			all = all && r.ownsNode(client, node, i)
		}
		for _, server := range r.counting(last) {
			s := r.key(server, last)
			all = all && (s.Node != node || s.Expires == 0 || s.Expires > e.Time)
		}
		if all {
			nodes++
		}
	}
	accepted := r.at(newer)
	return errors.Join(
		need(r.Meta.Fenced && e.Kind == checker.Write && !e.Accepted, "a write that a fenced resource refused"),
		need(latest == mine && r.hold(client, last) >= 0, "a holder's, after its latest acquire"),
		need(token != 0 && token >= given, "with the token that it was given"),
		need(accepted.Kind == checker.Write && accepted.Accepted && accepted.Token > token, "a larger one had been accepted"),
		need(2*nodes > len(r.Meta.Nodes), "the key was its own on most nodes all the time"),
	)
}

// ownsNode reports whether, before event i, the client owns the key on every counting server of a
// node, and the node has at least one.
func (r run) ownsNode(client, node string, i int) bool {
	owns := false
	for _, server := range r.counting(i) {
		switch s := r.key(server, i); {
		case s.Node != node:
		case s.Owner != client:
			return false
		default:
			owns = true
		}
	}
	return owns
}

func tokenOrder(r run, w []int) error {
	if len(w) != 2 {
		return errors.New("want two events")
	}
	first, second := r.at(w[0]), r.at(w[1])
	c, _ := r.callOf(w[1])
	return errors.Join(
		need(r.acquires(w[0]) && r.acquires(w[1]) && first.Token != 0 && second.Token != 0, "two acquires that got tokens"),
		need(second.Token == first.Token || second.Token < first.Token && w[0] < c.invoke,
			"the same token, or a smaller one that was called for after the other had been given"),
		need(second.Token < first.Token || second.Token != r.own(c.client, c.invoke), "not its own once more"),
	)
}

// own returns the token that the client got last and has not certainly given up, before event i; 0
// if there is none.
func (r run) own(client string, i int) int64 {
	token, depth := int64(0), 0
	for j, e := range r.Events[:i] {
		switch {
		case e.Client != client:
		case r.acquires(j):
			if r.hold(client, j) < 0 {
				depth = 0
			}
			depth++
			if e.Token != 0 {
				token = e.Token
			}
		case e.Kind == checker.Invoke && e.Op == checker.Release:
			depth = max(0, depth-1)
		case e.Kind == checker.Return && e.Op == checker.Release && e.Result != checker.Unknown && depth == 0:
			token = 0
		case e.Kind == checker.Crash || e.Kind == checker.Restart:
			token, depth = 0, 0
		}
	}
	return token
}
