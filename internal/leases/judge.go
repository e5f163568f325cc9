package leases

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/lockfault/lockfault/checker"
	"github.com/lockfault/lockfault/internal/rediscmd"
	"github.com/lockfault/lockfault/strategies"
)

// A judgement judges the occurrences of one history.
type judgement struct {
	h         checker.History
	class     Class
	incidents []incident
	nodes     []string
	async     bool // the lock declares, or was seen, to release asynchronously
	// late returns the asynchronous releases of the run, found once.
	late func() lateReleases
	// unanswered holds the requests whose replies were lost or late.
	unanswered []checker.Event
}

func newJudgement(h checker.History, l Lock) *judgement {
	class, _ := ClassOf(h, l)
	j := &judgement{h: h, class: class, incidents: incidents(h), nodes: h.Meta.Nodes, async: slices.Contains(l.Tags, strategies.TagAsync), unanswered: unanswered(h)}
	j.late = sync.OnceValue(j.lateReleases)
	return j
}

// majority returns the number of nodes that a quorum lock needs, or 1 for a lock of one node.
func (j *judgement) majority() int {
	switch j.class {
	case Majority, MajorityWatchdog:
		return len(j.nodes)/2 + 1
	}
	return max(1, len(j.nodes))
}

func (j *judgement) quorum() bool { return j.class == Majority || j.class == MajorityWatchdog }
func (j *judgement) renews() bool {
	return j.class == Watchdog || j.class == WatchdogNotifies || j.class == MajorityWatchdog
}

// find returns the first incident of one of the effects between two times, for which is returns true.
func (j *judgement) find(from, to time.Duration, is func(incident) bool, effects ...effect) *incident {
	for k := range j.incidents {
		if i := &j.incidents[k]; slices.Contains(effects, i.effect) && i.overlaps(from, to) && (is == nil || is(*i)) {
			return i
		}
	}
	return nil
}

func ofClient(name string) func(incident) bool {
	return func(i incident) bool { return i.client == name }
}

// judge returns the outcome of one occurrence, and the reason.
func (j *judgement) judge(w checker.Witness) (Outcome, string) {
	e := make([]checker.Event, len(w.Events))
	for i, at := range w.Events {
		e[i] = j.h.Events[at]
	}
	first, last := e[0], e[len(e)-1]
	switch w.Anomaly {
	case checker.Overlap:
		return j.overlap(w.Events[0], w.Events[1], w.Events[len(w.Events)-1])
	case checker.StaleWrite:
		if len(e) < 3 {
			return Bug, fmt.Sprintf("%s wrote without ever having had the lock", last.Client)
		}
		return j.overlap(w.Events[0], w.Events[1], w.Events[len(w.Events)-1])
	case checker.LostLock:
		return j.lostLock(e)
	case checker.TokenOrder, checker.RefusedWrite:
		return j.tokens(w.Anomaly, last)
	case checker.Keyless:
		if i := j.find(0, last.Time, nil, moves, clientMoves); i != nil {
			return Weakness, "the lease is a date by the client's clock, and the server compares it with its own: " + i.text
		}
		if name := j.otherKey(w.Events[0], w.Events[1]); name != "" {
			return Limitation, fmt.Sprintf("%s may hold the lock by %s, a key that the lock does not declare", first.Client, name)
		}
		asked := j.asked(first.Client, first.Time, last.Time)
		if asked != "" {
			asked = "; its last request was " + asked
		}
		return Bug, "acquire returned success, though no server had its key at any time during the call" + asked
	case checker.ForeignRelease, checker.ForeignExtend:
		return j.foreign(w, e)
	case checker.Ghost:
		return j.ghost(w, e)
	case checker.StuckLock:
		return j.stuck(w, e)
	case checker.Unreleasable:
		return j.unreleasable(w)
	case checker.NotReleased:
		return j.notReleased(w, e)
	case checker.IdleTraffic:
		return Weakness, fmt.Sprintf("%s goes on sending %s, though it neither holds nor waits: what the lock started for a hold should end with it, such as a watchdog or a poll", last.Client, last.Command)
	case checker.SelfDeadlock:
		return j.selfDeadlock(e[len(e)-2], last.Time)
	case checker.Deadlock:
		return j.deadlock(e)
	case checker.Starvation:
		return j.starvation(w)
	case checker.Unavailable:
		return j.unavailable(w)
	}
	return Bug, "no fault excuses it"
}

// selfDeadlock judges a call by a holder that had not succeeded at a time.
func (j *judgement) selfDeadlock(call checker.Event, to time.Duration) (Outcome, string) {
	if j.class != Reentrant {
		return Limitation, "a lock that is not reentrant refuses its own holder, too"
	}
	if i := j.find(call.Time, to, ofClient(call.Client), cutOff); i != nil {
		return Limitation, "the acquire did not reach the server: " + i.text
	}
	return Bug, fmt.Sprintf("%s had the lock, which is reentrant, and its %s at %s did not succeed", call.Client, call.Op, at(call.Time))
}

// start returns when the call that returned at event at was called, and when its client's request
// was sent that last gave the client a key; the last request before the return, if none did.
func (j *judgement) start(at int) (called, sent time.Duration) {
	ret := j.h.Events[at]
	called, sent = ret.Time, ret.Time
	gave := false // a command of the client whose request comes next
	for i := at - 1; i >= 0; i-- {
		e := j.h.Events[i]
		switch {
		case e.Kind == checker.State && e.Cause == checker.ByCommand && e.Client == ret.Client && e.Owner == ret.Client:
			gave = true
		case e.Kind == checker.Request && e.Client == ret.Client && gave:
			return j.invoked(at), max(e.Sent, j.invoked(at))
		case e.Kind == checker.Request && e.Client == ret.Client && sent == ret.Time:
			sent = e.Sent
		case e.Kind == checker.Invoke && e.Call == ret.Call:
			return e.Time, min(max(sent, e.Time), ret.Time)
		}
	}
	return called, sent
}

// invoked returns when the call that returned at event at was called.
func (j *judgement) invoked(at int) time.Duration {
	for i := at - 1; i >= 0; i-- {
		if e := j.h.Events[i]; e.Kind == checker.Invoke && e.Call == j.h.Events[at].Call {
			return e.Time
		}
	}
	return j.h.Events[at].Time
}

// leaseEnd returns when the lease of client's hold, which began at event began, ends as far as the
// client can rely on it at time t: on each node, the time at which its latest confirmed request that
// took or prolonged the key was sent, plus the time to live that it asked for. Of several nodes it is
// the time from which fewer than a majority last. known is false if no key shows it. A nested acquire
// that came after the key had ended prolongs nothing: it took a key of its own, which its release removes.
func (j *judgement) leaseEnd(client string, began int, t time.Duration) (end time.Duration, known bool) {
	called, _ := j.start(began)
	type grant struct {
		end  time.Duration
		node string
	}
	ends := map[string]time.Duration{}
	var pending []grant // not confirmed yet
	var request checker.Event
	var before map[string]time.Duration // ends when the client's key ended of itself; nil if it did not
	holds, holdsBefore := 0, 0
	for i, e := range j.h.Events {
		if e.Time > t {
			break
		}
		if e.Client == client && i >= began {
			switch {
			case e.Kind == checker.Return && e.Result == checker.OK && (e.Op == checker.Acquire || e.Op == checker.TryAcquire):
				holds++
			case e.Kind == checker.Invoke && e.Op == checker.Release:
				if holds--; before != nil && holds <= holdsBefore {
					ends, before = before, nil
				}
			}
		}
		switch {
		case e.Kind == checker.Request:
			request = e
		case e.Kind == checker.State && e.Cause != checker.ByCommand && i > began && before == nil && ends[e.Node] != 0:
			before, holdsBefore = maps.Clone(ends), holds
		case e.Kind == checker.State && e.Cause == checker.ByCommand && e.Owner == client && e.Client == client && e.Time >= called:
			sent := e.Time
			if request.Client == client && request.Node == e.Node {
				sent = request.Sent
			}
			if e.Sent > 0 {
				sent = e.Sent
			}
			until := sent + j.h.Meta.TTL // the lease may be kept in the value
			switch {
			case e.Expires != 0:
				until = sent + e.Expires - e.Time
			case j.class == Forever:
				until = never
			}
			pending = append(pending, grant{until, e.Node})
		case e.Kind == checker.Reply && e.Client == client:
			for _, g := range pending {
				if g.node == e.Node {
					ends[g.node] = max(ends[g.node], g.end)
				}
			}
			pending = slices.DeleteFunc(pending, func(g grant) bool { return g.node == e.Node })
		}
	}
	need := j.majority()
	if len(ends) < need {
		return 0, false
	}
	list := make([]time.Duration, 0, len(ends))
	for _, end := range ends {
		list = append(list, end)
	}
	slices.Sort(list)
	return list[len(list)-need], true
}

// open returns the return of the acquire that an acquire's client still holds by at an event: of the acquire
// itself, or if that was released, of the one that it was nested in.
func (j *judgement) open(held, at int) int {
	var open []int
	for i, e := range j.h.Events[:at] {
		switch {
		case e.Client != j.h.Events[held].Client:
		case e.Kind == checker.Return && e.Result == checker.OK && (e.Op == checker.Acquire || e.Op == checker.TryAcquire):
			open = append(open, i)
		case e.Kind == checker.Invoke && e.Op == checker.Release && len(open) > 0:
			open = open[:len(open)-1]
		}
	}
	if len(open) == 0 || slices.Contains(open, held) {
		return held
	}
	return open[len(open)-1]
}

// promised returns the end of the lease that the client asked for by its latest acquire or extend that
// had returned with success at time t: the validity that the lock published, or a TTL after the last
// request of the call was sent, less a tenth of the TTL. Nested acquires promise nothing, since a lock
// may count them on its own; neither does a lock that renews its lease by a rule of its own, or has
// none.
// by is the return of that call.
func (j *judgement) promised(client string, held int, t time.Duration) (end time.Duration, by checker.Event) {
	if j.renews() || j.class == Forever || j.h.Meta.Service != "" {
		return 0, by
	}
	for i := held; i < len(j.h.Events) && j.h.Events[i].Time <= t; i++ {
		e := j.h.Events[i]
		if e.Kind != checker.Return || e.Client != client || e.Result != checker.OK || i != held && e.Op != checker.Extend {
			continue
		}
		_, sent := j.start(i)
		if end = sent + j.h.Meta.TTL - j.h.Meta.TTL/10; e.Until > 0 {
			end = e.Until
		}
		by = e
	}
	return end, by
}

// calmSince returns when the last disturbance of the client's messages before a time had ended.
func (j *judgement) calmSince(client string, from, to time.Duration) time.Duration {
	since := from
	for _, i := range j.incidents {
		if (i.effect == unusable || i.effect == cutOff && i.client == client) && i.overlaps(from, to) {
			since = max(since, min(i.to, to))
		}
	}
	return since
}

// ownRemoval returns the request by which a client removed its own key between two times, outside of
// its releases; nil if it did not.
func (j *judgement) ownRemoval(client string, from, to time.Duration) *checker.Event {
	var request *checker.Event
	for i := range j.h.Events {
		e := &j.h.Events[i]
		switch {
		case e.Time < from || e.Time > to || e.Client != client:
		case e.Kind == checker.Request:
			request = e
		case e.Kind == checker.State && e.Cause == checker.ByCommand && e.Value == "" && request != nil && !j.busy(client, i, checker.Release):
			return request
		}
	}
	return nil
}

// overlap judges that the client of the return at event held had, or wrote by, a hold at event last, though
// the client of the return at event got had acquired.
func (j *judgement) overlap(held, got, last int) (Outcome, string) {
	t := j.h.Events[last].Time
	if j.granted(got) < j.granted(held) { // the reply of the earlier grant came later
		held, got = got, held
	}
	held = j.open(held, last)
	x, y := j.h.Events[held], j.h.Events[got]
	called, _ := j.start(held)
	begun := j.granted(got)
	if j.quorum() && j.h.Meta.Service == "" {
		for _, at := range []int{held, got} {
			holder := j.h.Events[at].Client
			since, _ := j.start(at) // the other may have called later, when a node had lost the holder's key
			if n := j.nodesOwned(holder, since, begun); n > 0 && n < j.majority() {
				return Bug, fmt.Sprintf("%s acquired with its key on %d of %d nodes", holder, n, len(j.nodes))
			}
		}
	}
	for _, at := range []int{held, got} { // a node may have lost the key of the later one, too, before that had a majority
		since, _ := j.start(at)
		if i := j.lost(j.h.Events[at].Client, since, begun); i != nil {
			return Limitation, "servers lose a lock: " + i.text
		}
	}
	end, known := j.leaseEnd(x.Client, held, begun)
	reaped, why := time.Duration(0), ""
	if j.class == Forever {
		if reaped, why = j.reapedIn(x.Client, called, begun); why != "" {
			end = reaped
		}
	}
	if known && begun < end {
		why := "and no server had lost the key"
		if by, how := j.ended(x.Client, called, begun); how != "" {
			if command, ok := j.repeated(x.Client, called, begun); ok && by.Client == x.Client && by.Command == command {
				return Weakness, "a command that its client library sent again counted twice: " + command
			}
			why = "after " + how
		} else if asked := j.asked(y.Client, j.invoked(got), y.Time); asked != "" && begun == y.Time { // without a change of the key
			return Bug, fmt.Sprintf("%s's acquire succeeded at %s, though %s had the key until %s; the last request of %[1]s was %[5]s", y.Client, at(y.Time), x.Client, at(end), asked)
		}
		if i := j.find(0, begun, func(i incident) bool { return i.client == x.Client || i.client == y.Client }, clientMoves); i != nil {
			why += "; " + i.text
		}
		return Bug, fmt.Sprintf("%s got the lock at %s, within the lease of %s until %s, %s", y.Client, at(begun), x.Client, at(end), why)
	}
	if promised, by := j.promised(x.Client, held, begun); begun < promised {
		if own := j.ownRemoval(x.Client, called, begun); own != nil {
			return Bug, fmt.Sprintf("%s removed its own key at %s (%s), and went on holding", x.Client, at(own.Time), own.Command)
		}
		why := cmp.Or(j.given(held, promised), "the key ended sooner; if the lock has a lease of its own, give it as the TTL: --ttl, or Subject.TTL")
		if by.Op == checker.Extend {
			why = "the extend did not prolong the key as long as that: its last request was " + cmp.Or(j.asked(x.Client, j.invoked(by.Index), by.Time), "none")
		}
		says := "and stands for nine tenths of a lease, until"
		if by.Until > 0 {
			says = "and said that it was valid until"
		}
		return Bug, fmt.Sprintf("%s got the lock at %s, though %s's %s succeeded at %s %s %s; %s",
			y.Client, at(begun), x.Client, by.Op, at(by.Time), says, at(promised), why)
	}
	if i := j.find(called, t, ofClient(x.Client), paused); i != nil {
		return Limitation, "a process that stands still cannot be told: " + i.text
	}
	disturbed := j.find(called, t, func(i incident) bool {
		return i.effect == unusable || i.client == x.Client
	}, cutOff, unusable)
	if known && x.Time > end && disturbed == nil {
		asked := j.asked(x.Client, called, x.Time)
		if asked != "" {
			asked = "; the last request of the acquire was " + asked
		}
		return Bug, fmt.Sprintf("%s's acquire returned success at %s, though its lease had ended at %s, and no fault made it late%s", x.Client, at(x.Time), at(end), asked)
	}
	switch j.class {
	case Lease, Reentrant, Fencing, Queue, Replicas:
		return Limitation, fmt.Sprintf("%s held longer than its lease, and a plain lease does not say so", x.Client)
	case Validity, Majority:
		if x.Until > 0 && x.Time > x.Until {
			return Bug, fmt.Sprintf("%s's acquire returned success at %s, though its validity had ended at %s", x.Client, at(x.Time), at(x.Until))
		}
		if !j.h.Meta.HonourValidity {
			return Limitation, fmt.Sprintf("%s held longer than its lease, and did not look at its validity", x.Client)
		}
	case Watchdog:
		if disturbed != nil && j.h.Meta.TTL > 0 && known && end-j.calmSince(x.Client, called, end) > j.h.Meta.TTL/2 {
			return Bug, fmt.Sprintf("no renewal was sent, though messages of %s passed for the last half of its lease", x.Client)
		}
		if disturbed != nil && x.Time >= begun {
			return Weakness, "it counts an acquire whose lease was over before the reply came as a success: " + disturbed.text
		}
		if disturbed != nil {
			return Weakness, "it counts a renewal without an answer as a success: " + disturbed.text
		}
		return Bug, "its renewals stopped, though no fault touched them"
	}
	if j.class == Forever {
		if why != "" && disturbed != nil {
			return Limitation, why + ": " + disturbed.text
		}
		return Bug, "a lock without a lease ends only when its holder ends it"
	}
	if (j.class == Validity || j.class == Majority) && x.Until == 0 {
		return Bug, fmt.Sprintf("%s was not told until when its hold is valid, which the class %s promises: by a method ValidUntil", x.Client, j.class)
	}
	if asked := j.asked(x.Client, 0, begun); known && asked != "" {
		if disturbed != nil {
			asked += "; " + disturbed.text
		}
		return Bug, fmt.Sprintf("%s was not told that its lease had ended at %s: its last request before %s got the lock was %s", x.Client, at(end), y.Client, asked)
	}
	return Bug, fmt.Sprintf("%s was not told that its lease had ended", x.Client)
}

// granted returns when the servers granted the acquire that returned at event at: the time of the last
// change that gave its client a key, or else of the return.
func (j *judgement) granted(at int) time.Duration {
	ret := j.h.Events[at]
	for i := at - 1; i >= 0; i-- {
		switch e := j.h.Events[i]; {
		case e.Kind == checker.Invoke && e.Call == ret.Call:
			return ret.Time
		case e.Kind == checker.State && e.Cause == checker.ByCommand && e.Client == ret.Client && e.Owner == ret.Client:
			return e.Time
		}
	}
	return ret.Time
}

// lost returns an incident by which servers lost the key of the client, or moved their clocks, between
// two times; nil if a majority of the nodes, or the only one, kept it.
func (j *judgement) lost(client string, from, to time.Duration) *incident {
	effects := []effect{loses, fails, splits, moves}
	if j.class == Replicas { // that is what such a lock is for
		effects = []effect{loses, moves}
	}
	var found *incident
	kept := 0
	for _, node := range j.nodes {
		i := j.find(from, to, func(i incident) bool { return i.node == node }, effects...)
		if found == nil {
			found = i
		}
		if i == nil && j.owned(client, node, from, to) {
			kept++
		}
	}
	if found == nil || kept >= j.majority() {
		return nil
	}
	return found
}

// nodesOwned returns the number of nodes on which the client owned the key at some time.
func (j *judgement) nodesOwned(client string, from, to time.Duration) (n int) {
	for _, node := range j.nodes {
		if j.owned(client, node, from, to) {
			n++
		}
	}
	return n
}

// owned reports whether the client owned the key on the node at some time.
func (j *judgement) owned(client, node string, from, to time.Duration) bool {
	return slices.ContainsFunc(j.h.Events, func(e checker.Event) bool {
		return e.Kind == checker.State && e.Node == node && e.Owner == client && e.Time >= from && e.Time <= to
	})
}

func (j *judgement) lostLock(e []checker.Event) (Outcome, string) {
	last := e[len(e)-1]
	if j.class == Replicas && last.Cause == checker.ByFailover {
		return Bug, "the lock is relied on only when a replica that is promoted has it"
	}
	return Limitation, fmt.Sprintf("what servers lose is lost: %s on %s", last.Cause, last.Node)
}

func (j *judgement) tokens(a checker.Anomaly, last checker.Event) (Outcome, string) {
	to := last.Time
	if i := j.find(0, to, nil, loses, fails, splits); i != nil {
		return Limitation, "the counter is lost with the lock: " + i.text
	}
	if i := j.find(0, to, nil, moves); i != nil {
		return Weakness, "tokens follow a clock that moved: " + i.text
	}
	if a == checker.RefusedWrite {
		return Bug, fmt.Sprintf("%s, the holder, has a smaller token than one that wrote before: the token must be drawn in the step that grants the lock", last.Client)
	}
	drawn := "the token of a later holder is not larger"
	if last.Token > 0 {
		drawn = fmt.Sprintf("%s's token at %s is %d, and an earlier holder had one that is as large", last.Client, at(last.Time), last.Token)
	}
	return Bug, drawn + ": it must be drawn in the step that grants the lock, from a counter that never goes back"
}

func (j *judgement) foreign(w checker.Witness, e []checker.Event) (Outcome, string) {
	last := w.Events[len(w.Events)-1]
	did := j.h.Events[last]
	if w.Anomaly == checker.ForeignRelease {
		if why := j.reaped(last, e[0].Owner); why != "" {
			return Limitation, why
		}
	}
	if e[0].Kind == checker.State && e[0].Expires == 0 && did.Time-e[0].Time >= j.h.Meta.TTL && j.hidesExpiry(w.Events[0]) {
		return Limitation, "the key may have ended by an expiry that cannot be observed, of a field"
	}
	if w.Anomaly == checker.ForeignExtend && j.keyless(did.Node, last) {
		return Bug, fmt.Sprintf("a command of %s made a key that was gone, outside of an acquire", did.Client)
	}
	return Bug, j.unlooked(e[0], last)
}

// keyless reports whether a node had no key of the lock before an event.
func (j *judgement) keyless(node string, at int) bool {
	for i := at - 1; i >= 0; i-- {
		if e := j.h.Events[i]; e.Kind == checker.State && e.Node == node {
			return e.Owner == "" && e.Value == ""
		}
	}
	return true
}

// reaped returns why the client of event at may remove the key of owner: the owner's process had ended,
// or nothing that it had sent within a lease had reached the server. reaped returns "" if neither is so, and for an event
// that belongs to a release.
func (j *judgement) reaped(at int, owner string) string {
	did := j.h.Events[at]
	if j.busy(did.Client, at, checker.Release) {
		return ""
	}
	if dead := j.find(0, did.Time, ofClient(owner), gone); dead != nil && dead.to == never {
		return fmt.Sprintf("%s removed the key of %s, whose process had ended", did.Client, owner)
	}
	sent := time.Duration(-1) // neither a request that was long under way nor a new connection shows that the owner is alive
	for _, x := range j.h.Events[:at] {
		if x.Kind == checker.Request && x.Client == owner && x.Node == did.Node && !setsUp(x.Command) {
			sent = max(sent, x.Sent)
		}
	}
	if sent >= 0 && did.Time-sent >= j.h.Meta.TTL*3/4 { // an owner that reports only now and then
		return fmt.Sprintf("%s removed the key of %s, from which nothing sent within a lease had reached the server", did.Client, owner)
	}
	return ""
}

// setsUp reports whether a command only sets up a connection.
func setsUp(command string) bool {
	name, _, _ := strings.Cut(command, " ")
	return rediscmd.Lookup(strings.ToUpper(name)).SetsUp
}

// reapedIn returns the first removal or takeover of the client's key between two times that reaped
// allows, and why it does; why is "" if there is none.
func (j *judgement) reapedIn(client string, from, to time.Duration) (when time.Duration, why string) {
	was := map[string]string{} // owners, by node
	for i, e := range j.h.Events {
		if e.Kind != checker.State {
			continue
		}
		if e.Time >= from && e.Time <= to && was[e.Node] == client && e.Cause == checker.ByCommand && e.Owner != client && e.Client != client {
			if why := j.reaped(i, client); why != "" {
				return e.Time, why
			}
		}
		was[e.Node] = e.Owner
	}
	return 0, ""
}

// fieldExpires reports whether the command that gave the client the key before event at gave a field of
// the key a time to live.
func (j *judgement) fieldExpires(client string, at int) bool {
	for i := at; i > 0; i-- {
		e := j.h.Events[i]
		if e.Kind == checker.State && e.Cause == checker.ByCommand && e.Client == client && e.Owner == client {
			return slices.Contains([]string{"HSETEX", "HGETEX", "HEXPIRE", "HPEXPIRE", "HEXPIREAT", "HPEXPIREAT"}, rediscmd.Of(words(j.h.Events[i-1].Command)).Name)
		}
	}
	return false
}

// hidesExpiry reports whether the request that made the change at event at may have given a part of
// the key a time to live.
func (j *judgement) hidesExpiry(at int) bool {
	for i := at - 1; i >= 0; i-- {
		if e := j.h.Events[i]; e.Kind == checker.Request {
			list := words(e.Command)
			c := rediscmd.Of(list)
			return len(list) > 0 && (c.RunsScript() || c.Group == "hash")
		}
	}
	return false
}

// busy reports whether the client has an operation of the given kind under way at event at.
func (j *judgement) busy(client string, at int, op checker.Op) bool {
	under := false
	for _, e := range j.h.Events[:at] {
		if e.Client != client {
			continue
		}
		switch e.Kind {
		case checker.Invoke:
			under = e.Op == op
		case checker.Return, checker.Crash, checker.Restart:
			under = false
		}
	}
	return under
}

// otherKey returns a key, besides the lock's, that a client may have written between two events; empty
// if it wrote none. The lock's keys are those that a request named alone when it changed the lock.
func (j *judgement) otherKey(from, to int) string {
	known := map[string]bool{}
	var request checker.Event
	for _, e := range j.h.Events {
		switch {
		case e.Kind == checker.Request:
			request = e
		case e.Kind == checker.State && e.Cause == checker.ByCommand && request.Client == e.Client:
			if keys := keysOf(request.Command); len(keys) == 1 {
				known[keys[0]] = true
			}
		}
	}
	client := j.h.Events[from].Client
	for _, e := range j.h.Events[from:to] {
		if e.Kind != checker.Request || e.Client != client {
			continue
		}
		for _, key := range keysOf(e.Command) {
			if !known[key] {
				return key
			}
		}
	}
	return ""
}

// keysOf returns the keys of a request that may write.
func keysOf(command string) []string {
	words := words(command)
	if len(words) == 0 {
		return nil
	}
	if c := rediscmd.Of(words); c.MayWrite() || c.RunsScript() {
		return c.KeysIn(words)
	}
	return nil
}

// words returns the words of a recorded command, quoted words with their quotes.
func words(command string) (list []string) {
	for {
		command = strings.TrimLeft(command, " ")
		if command == "" {
			return list
		}
		word, err := strconv.QuotedPrefix(command)
		if err != nil {
			word, _, _ = strings.Cut(command, " ")
		}
		list, command = append(list, word), command[len(word):]
	}
}

func (j *judgement) ghost(w checker.Witness, e []checker.Event) (Outcome, string) {
	for i, x := range e {
		if x.Kind != checker.Return {
			continue
		}
		called, _ := j.start(w.Events[i])
		if command, ok := j.repeated(x.Client, called, x.Time); ok {
			if j.refused(x.Client, command, called, x.Time) {
				return Weakness, "its own key refused a command that its client library sent again after a lost reply, and it did not look whose key that was: " + command
			}
			return Weakness, "after a lost reply its client library sent a command again, and it did not look whether the first one had succeeded: " + command
		}
		if !j.quorum() {
			if how := j.left(x.Client, called, x.Time); how != "" {
				return Bug, how
			}
			continue
		}
		if node := j.leftUntried(x.Client, x.Time); node != "" {
			return Bug, fmt.Sprintf("its key stayed on %s, and it sent nothing to remove it", node)
		}
		if i := j.find(called, x.Time, ofClient(x.Client), cutOff); i != nil {
			n := j.nodesOwned(x.Client, called, x.Time)
			return Limitation, fmt.Sprintf("its key stayed on %d of %d nodes until its lease ended: %s", n, len(j.nodes), i.text)
		}
	}
	return Bug, "acquire said that it had failed without knowing so"
}

// leftUntried returns a node that has the client's key at a time, and to which the client sent nothing
// that writes after the request that got the key, although the node was in reach; empty if no node has.
func (j *judgement) leftUntried(client string, at time.Duration) string {
	for _, node := range j.nodes {
		var got checker.Event // the request that got the key; without a kind if the key is not the client's
		for i, e := range j.h.Events {
			switch {
			case e.Kind != checker.State || e.Node != node || e.Time > at:
			case e.Owner != client:
				got = checker.Event{}
			case e.Cause == checker.ByCommand && e.Client == client && got.Kind == "":
				got = j.requestOf(i)
			}
		}
		tried := slices.ContainsFunc(j.h.Events, func(e checker.Event) bool {
			sent := e.Kind == checker.Request || e.Direction == "request" && (e.Kind == checker.Held || e.Kind == checker.Dropped)
			later := sentOr(e) > sentOr(got) || sentOr(e) == sentOr(got) && e.Index > got.Index
			return sent && later && e.Client == client && e.Node == node && e.Time <= at && e.Command != got.Command && len(keysOf(e.Command)) > 0
		})
		unreachable := j.find(at, at, func(i incident) bool {
			return (i.client == "" || i.client == client) && (i.node == "" || i.node == node) && len(i.ends) > 0
		}, cutOff, unusable)
		if got.Kind != "" && !tried && unreachable == nil {
			return node
		}
	}
	return ""
}

// repeated returns a command that the client sent again between two times, while it had no reply to the
// same command, a message of which was lost, held or late. A lock that polls sends a command again, too,
// but has its reply.
func (j *judgement) repeated(client string, from, to time.Duration) (command string, ok bool) {
	const same = time.Millisecond      // two records of one message differ by less
	sent := map[string]time.Duration{} // when the command without a reply was sent first, by node and command
	lost := map[string]bool{}
	for _, e := range j.h.Events {
		if e.Time > to {
			break
		}
		if e.Time < from || e.Client != client || e.Direction == "push" {
			continue
		}
		key := e.Node + " " + e.Command
		request := e.Kind == checker.Request || e.Direction == "request" && (e.Kind == checker.Held || e.Kind == checker.Dropped)
		if first, again := sent[key]; request && again && lost[key] && sentOr(e)-first >= same {
			return e.Command, true
		} else if request && !again {
			sent[key] = sentOr(e)
		}
		switch {
		case e.Kind == checker.Held || e.Kind == checker.Dropped:
			lost[key] = true
		case e.Kind == checker.Reply:
			delete(sent, key)
			delete(lost, key)
		case e.Kind == checker.Request && slices.ContainsFunc(j.unanswered, func(u checker.Event) bool { return u.Index == e.Index }):
			lost[key] = true
		}
	}
	return "", false
}

// unreleasable judges a release that failed after another client had replaced the holder's value. A
// release of which no request reached a server did not fail for that.
func (j *judgement) unreleasable(w checker.Witness) (Outcome, string) {
	at := w.Events[len(w.Events)-1]
	ret, called := j.h.Events[at], j.invoked(at)
	for i := at; i >= 0 && j.h.Events[i].Time >= called; i-- {
		if e := j.h.Events[i]; e.Kind == checker.Request && e.Client == ret.Client {
			if _, how := j.ended(ret.Client, 0, e.Time); how != "" {
				return Bug, how + ", so its release finds another's"
			}
			return Bug, "no fault excuses it"
		}
	}
	if i := j.find(called, ret.Time, ofClient(ret.Client), cutOff); i != nil {
		return Limitation, "the release reached no server: " + i.text
	}
	return Bug, "no fault excuses it"
}

func (j *judgement) stuck(w checker.Witness, e []checker.Event) (Outcome, string) {
	owner, to := "", e[len(e)-1].Time
	for _, x := range e {
		if x.Kind == checker.State {
			owner = x.Owner
		}
	}
	mine := ofClient(owner)
	if j.class == Forever {
		if i := j.find(0, to, mine, paused, gone, cutOff); i != nil {
			return Limitation, "without a lease nothing but its holder ends the lock: " + i.text
		}
		if j.cancelled(owner) {
			return Limitation, "without a lease nothing but its holder ends the lock: its acquire was cancelled"
		}
		if i := j.find(0, to, nil, moves, loses, fails, splits, unusable); i != nil {
			return Limitation, "without a lease nothing but its holder ends the lock: " + i.text
		}
		return Bug, "no fault kept its holder from giving it up"
	}
	if command, ok := j.repeated(owner, 0, to); ok {
		if j.refused(owner, command, 0, to) {
			return Weakness, "its own key, which nothing ends, refused a command that its client library sent again after a lost reply: " + command
		}
		return Weakness, "a command that its client library sent again counted twice: " + command
	}
	if j.fieldExpires(owner, w.Events[len(w.Events)-1]) {
		return Limitation, "a field of the key has a time to live, which cannot be observed"
	}
	return Bug, j.endless(owner)
}

func (j *judgement) cancelled(client string) bool {
	return slices.ContainsFunc(j.h.Events, func(e checker.Event) bool { return e.Kind == checker.Cancel && e.Client == client })
}

// deadlock judges a standstill: without a fault of the servers or of a member's messages it is the
// order in which the lock takes its parts.
func (j *judgement) deadlock(e []checker.Event) (Outcome, string) {
	from, to := e[0].Time, e[len(e)-1].Time
	if i := j.find(from, to, nil, unusable, fails, splits); i != nil {
		return Limitation, "servers did not answer: " + i.text
	}
	var members []string
	parts := ""
	for _, x := range e[:len(e)-1] {
		if x.Kind == checker.State && x.Owner == "" && x.Value != "" { // one value names several
			parts = " (" + x.Value + ")"
		}
	}
	for _, x := range e {
		if i := j.find(from, to, ofClient(x.Client), cutOff); x.Client != "" && i != nil {
			return Limitation, "a message did not arrive: " + i.text
		}
		if x.Kind == checker.Invoke && !slices.Contains(members, x.Client) {
			members = append(members, x.Client)
		}
	}
	return Bug, fmt.Sprintf("%s had a part each%s and waited for one another from %s to %s; take the parts in one order, or give them up before another attempt",
		enumerate(members), parts, at(e[max(0, len(e)-2)].Time), at(to))
}

func (j *judgement) starvation(w checker.Witness) (Outcome, string) {
	holder := j.h.Events[w.Events[0]].Client
	extended := slices.ContainsFunc(j.h.Events, func(e checker.Event) bool {
		return e.Kind == checker.Invoke && e.Op == checker.Extend && e.Client == holder
	})
	switch {
	case extended:
		return Limitation, holder + " extended its lease again and again"
	case j.renews() || j.class == Forever || renewsItself(j.h):
		return Limitation, "a lock that is renewed, or never ends, lasts as long as its holder's process"
	}
	if i := j.find(0, j.h.Events[w.Events[len(w.Events)-1]].Time, nil, moves, unusable, cutOff, paused); i != nil {
		return Limitation, "the lease could not end, or no one could see it: " + i.text
	}
	why := "the lease of " + holder + " should have ended"
	if owners := j.owners(j.h.Events[w.Events[len(w.Events)-1]].Time); len(owners) > 0 {
		why += "; the lock's keys were " + strings.Join(owners, " and ")
	}
	return Bug, why
}

func (j *judgement) unavailable(w checker.Witness) (Outcome, string) {
	call := j.h.Events[w.Events[0]]
	to := j.h.Events[w.Events[len(w.Events)-1]].Time
	after := j.h.Meta.TTL + max(0, j.h.Meta.Bound)
	from := call.Time - after
	dead, why := j.dead(w)
	if dead == Bug {
		return dead, why
	}
	if i := j.find(from, to, ofClient(call.Client), paused, gone); i != nil {
		return Limitation, "the caller: " + i.text
	}
	if key := j.minimumHold(call.Time, to); key != nil {
		return Limitation, fmt.Sprintf("the release of %s left its key until %s, a minimum hold", key.Owner, at(key.Expires))
	}
	if reason := j.late().keptFrom(call.Time, to); reason != "" {
		return Limitation, reason
	}
	if j.class == Forever {
		if i := j.find(0, to, nil, paused, gone, cutOff); i != nil {
			return Limitation, "without a lease nothing but its holder ends the lock: " + i.text
		}
	}
	// Nodes that the caller cannot use, or that cannot serve it.
	out := 0
	var unusableBy *incident
	for _, node := range j.nodes {
		i := j.find(from, to, func(i incident) bool {
			return (i.node == node || i.node == "") && (i.client == "" || i.client == call.Client)
		}, unusable, cutOff, fails, splits)
		if i != nil {
			out++
			unusableBy = i
		}
	}
	if out > len(j.nodes)-j.majority() {
		return Limitation, "the servers that the lock needs were out of reach: " + unusableBy.text
	}
	if j.quorum() {
		late := time.Duration(0)
		for _, i := range j.incidents {
			if i.effect == cutOff && i.client == call.Client && i.to != never && i.overlaps(call.Time, to) {
				late += i.to - max(i.from, call.Time)
			}
		}
		if late > j.h.Meta.TTL {
			return Limitation, fmt.Sprintf("the servers replied, but all together later than the lease: messages of %s were late", call.Client)
		}
	}
	if j.class == Replicas {
		if i := j.find(0, to, nil, fails, lagging, splits); i != nil {
			return Limitation, "too few replicas confirm: " + i.text
		}
	}
	if dead != "" {
		return dead, why
	}
	why = j.silence(call.Client, call.Time, to)
	if asked := j.asked(call.Client, call.Time, to); why == "" && asked != "" {
		why = fmt.Sprintf("its last request was %s", asked)
		if owners := j.owners(to); len(owners) > 0 {
			why += "; the lock's keys were " + strings.Join(owners, " and ")
		} else if j.class == Queue {
			why += "; nobody had the lock, so the queue may keep the place of a client that no longer waits"
		}
	}
	return Bug, fmt.Sprintf("no fault kept %s from the servers that the lock needs; %s", call.Client, cmp.Or(why, "it sent no request"))
}

// owners returns whose the lock's keys were on each node just before a time, "A's, whose process had ended,
// on n1", or what they were if that does not name a client.
func (j *judgement) owners(t time.Duration) (list []string) {
	latest := map[string]checker.Event{}
	for _, e := range j.h.Events {
		if e.Time >= t {
			break
		}
		if e.Kind == checker.State {
			latest[e.Node] = e
		}
	}
	for _, node := range j.nodes {
		for _, name := range checker.Parts(latest[node], j.h.Meta.Clients) {
			text := name + "'s"
			if dead := j.find(0, t, ofClient(name), gone); dead != nil && dead.to == never {
				text += ", whose process had ended,"
			}
			list = append(list, text+" on "+node)
		}
		if e := latest[node]; e.Value != "" && len(checker.Parts(e, j.h.Meta.Clients)) == 0 {
			list = append(list, fmt.Sprintf("%s on %s since %s", e.Value, node, at(e.Time)))
		}
	}
	return list
}

// notReleased judges a release that left its key: the fault must have touched the release itself, or
// the command that was left to be sent.
func (j *judgement) notReleased(w checker.Witness, e []checker.Event) (Outcome, string) {
	last := e[len(e)-1]
	if last.Op == checker.Release && checker.DefiniteError(last.Error) != "" {
		outcome, reason := j.dead(w)
		if i := j.find(e[0].Time, last.Time, nil, unusable, fails, splits); outcome != Bug && i != nil {
			return Limitation, "the server refused the release: " + i.text
		}
		if outcome != "" {
			return outcome, reason
		}
	}
	k := slices.IndexFunc(e, func(x checker.Event) bool { return x.Kind == checker.Return && x.Op == checker.Release })
	if k < 0 {
		return Bug, "no fault touched the release"
	}
	if reason := j.late().of(e[k].Index); reason != "" {
		return Limitation, reason
	}
	from := j.invoked(w.Events[k])
	for _, i := range []*incident{
		j.find(from, last.Time, ofClient(e[k].Client), cutOff, paused),
		j.find(from, last.Time, nil, unusable, fails, splits),
	} {
		if i != nil {
			return Limitation, "the release did not reach the server: " + i.text
		}
	}
	if e[k].Result == checker.Fail {
		for _, x := range j.h.Events[w.Events[0]:w.Events[k]] {
			if x.Kind == checker.Return && x.Client == e[k].Client && x.Result == checker.Fail && x.Op != checker.Extend {
				return Weakness, "an attempt of the holder failed, and then its release said that the lock was not held: the attempt must not replace the owner value that the release compares"
			}
		}
		return Bug, fmt.Sprintf("%s's release said that the lock was not held, though its key was there", e[k].Client)
	}
	asked := cmp.Or(j.asked(e[k].Client, from, e[k].Time), "none")
	return Bug, fmt.Sprintf("%s's release returned, and the key%s stayed; the last request of the release: %s", e[k].Client, j.maker(e[k].Client, w.Events[k]), asked)
}

// dead judges an acquire or a release that failed with a definite error of a server: a bug if at least
// three of its kind, of two clients, failed so after the last fault, over at least a TTL, and none
// succeeded since; a weakness if a later one succeeded. The outcome is empty for others.
func (j *judgement) dead(w checker.Witness) (Outcome, string) {
	failed := j.h.Events[w.Events[len(w.Events)-1]]
	kind := checker.DefiniteError(failed.Error)
	if kind == "" {
		return "", ""
	}
	last := time.Duration(-1) // when the last fault ended
	for _, i := range j.incidents {
		if i.effect != cutOff && i.to <= failed.Time {
			last = max(last, i.to)
		}
	}
	what := "acquire"
	if failed.Op == checker.Release {
		what = "release"
	}
	clients, times := map[string]bool{}, []time.Duration{}
	for _, e := range j.h.Events {
		switch {
		case e.Kind != checker.Return || e.Op == checker.Extend || (e.Op == checker.Release) != (failed.Op == checker.Release) || e.Time < last:
		case e.Result == checker.OK:
			if len(times) > 0 {
				return Weakness, fmt.Sprintf("the %s failed (%s), and a later one succeeded", what, kind)
			}
		case checker.DefiniteError(e.Error) == kind:
			clients[e.Client] = true
			times = append(times, e.Time)
		}
	}
	if len(times) >= 3 && len(clients) >= 2 && times[len(times)-1]-times[0] >= j.h.Meta.TTL {
		return Bug, fmt.Sprintf("the server refused every %s with %s, for longer than a lease after the last fault", what, kind)
	}
	return "", ""
}

// minimumHold returns a change by which a client shortened the lease of its own key in a release, so
// that the key existed between two times; nil if no client did.
func (j *judgement) minimumHold(from, to time.Duration) *checker.Event {
	for i := range j.h.Events {
		e := &j.h.Events[i]
		if e.Kind == checker.State && e.Cause == checker.ByCommand && e.Owner != "" && e.Owner == e.Client && e.Expires > from && e.Time < to &&
			e.Expires-e.Time < j.h.Meta.TTL && j.busy(e.Client, i, checker.Release) {
			return e
		}
	}
	return nil
}

// enumerate returns names as a clause: "A, B and C".
func enumerate(names []string) string {
	if len(names) < 2 {
		return strings.Join(names, "")
	}
	last := len(names) - 1
	return strings.Join(names[:last], ", ") + " and " + names[last]
}

// at formats a time as messages of the checker do.
func at(t time.Duration) string {
	if t == never {
		return "its release"
	}
	return fmt.Sprintf("%.3fs", t.Seconds())
}
