package leases

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"time"

	"github.com/lockfault/lockfault/checker"
	"github.com/lockfault/lockfault/internal/rediscmd"
)

// This file says what led to an anomaly: the command that ended a key, or the look that came too early.

// requestOf returns the request by which a client's command changed a node's key in the state at an
// index; without a kind if the history has none.
func (j *judgement) requestOf(state int) checker.Event {
	s := j.h.Events[state]
	for i := state - 1; i >= 0; i-- {
		if e := j.h.Events[i]; e.Kind == checker.Request && e.Client == s.Client && e.Node == s.Node {
			return e
		}
	}
	return checker.Event{}
}

// ended returns the request that ended a client's key between two times, the last one if there are several, and
// what it did, as a clause; empty if no command did.
func (j *judgement) ended(client string, from, to time.Duration) (by checker.Event, how string) {
	owner := map[string]string{} // by node
	for i, e := range j.h.Events {
		if e.Kind != checker.State {
			continue
		}
		was := owner[e.Node]
		owner[e.Node] = e.Owner
		if e.Time < from || e.Time > to || was != client || e.Owner == client || e.Cause != checker.ByCommand {
			continue
		}
		did := "removed"
		if e.Owner != "" || e.Value != "" {
			did = "replaced"
		}
		if request := j.requestOf(i); request.Kind != "" {
			by, how = request, fmt.Sprintf("%s's %s at %s%s %s %s's key", request.Client, request.Command, at(request.Time), j.within(i), did, client)
		}
	}
	return by, how
}

// endless returns why a key of a client does not end: the command that gave it no time to live or took it
// away, or a renewal that goes on.
func (j *judgement) endless(owner string) string {
	const remedy = "set it in the command that takes the key; a lock without a lease declares the class forever"
	last := j.lastState(len(j.h.Events), func(e checker.Event) bool {
		return e.Owner == owner && e.Client == owner && e.Cause == checker.ByCommand
	})
	if last < 0 {
		return "its key has no time to live: " + remedy
	}
	x, did := j.h.Events[last], "gave the key no time to live"
	if x.Expires > 0 {
		return owner + " goes on renewing a key by which it holds nothing: end the renewal when the release begins, and when an acquire has failed"
	}
	if i := j.lastState(last, func(e checker.Event) bool { return e.Node == x.Node }); i >= 0 && j.h.Events[i].Owner == owner && j.h.Events[i].Expires > 0 {
		did = "took the key's time to live away"
	}
	by := j.requestOf(last)
	return fmt.Sprintf("%s's %s at %s %s: %s", owner, cmp.Or(by.Command, "command"), at(x.Time), did, remedy)
}

// lastState returns the index of the last State event before an event for which is returns true; -1 if there is none.
func (j *judgement) lastState(before int, is func(checker.Event) bool) int {
	for i := before - 1; i >= 0; i-- {
		if e := j.h.Events[i]; e.Kind == checker.State && is(e) {
			return i
		}
	}
	return -1
}

// ownerWord matches the value of a key that is one owner value, by its short name.
var ownerWord = regexp.MustCompile(`^([A-Z])\d+$`)

// unlooked returns why a client's command met another's key, given the last state of the key before it.
func (j *judgement) unlooked(was checker.Event, did int) string {
	e := j.h.Events[did]
	if e.Command == "" {
		return "a command changed a key without looking whose it is"
	}
	look, between := j.lastLook(did)
	m := ownerWord.FindStringSubmatch(was.Value)
	switch shared := m != nil && m[1] != was.Owner; {
	case look.Kind != "" && !sharesKey(look.Command, e.Command):
		return fmt.Sprintf("%s looked at another key with %s, and its %s changed the lock's: both keys must be written, and compared, in one step", e.Client, look.Command, e.Command)
	case between:
		return fmt.Sprintf("%s looked with %s at %s, and sent %s at %s: the key became %s's in between, so both belong in one step, such as a script",
			e.Client, look.Command, at(look.Time), e.Command, at(sentOr(e)), was.Owner)
	case shared && len(keysOf(e.Command)) > 1:
		return fmt.Sprintf("%s and %s write the same value into the lock's key, and its owner into another: both must be written in one step", e.Client, was.Owner)
	case shared && (look.Kind != "" || rediscmd.Of(words(e.Command)).RunsScript()):
		return fmt.Sprintf("%s and %s write the same value, so no comparison tells them apart: use one that is new for each acquire (in virtual time all clients have one host name and one process id)", e.Client, was.Owner)
	}
	return fmt.Sprintf("%s's %s does not look whose the key is", e.Client, e.Command)
}

// lastLook returns the last request of the same operation and node, before the request at an index, that
// only reads, and whether the key changed after it; without a kind if there is none.
func (j *judgement) lastLook(at int) (look checker.Event, changed bool) {
	e := j.h.Events[at]
	for i := at - 1; i >= 0; i-- {
		switch x := j.h.Events[i]; {
		case x.Kind == checker.Invoke && x.Client == e.Client:
			return checker.Event{}, false
		case x.Node != e.Node:
		case x.Kind == checker.State:
			changed = true
		case x.Kind == checker.Request && x.Client == e.Client && readsOnly(x.Command):
			return x, changed
		}
	}
	return checker.Event{}, false
}

// sharesKey reports whether two commands name the same key.
func sharesKey(a, b string) bool {
	first, second := words(a), words(b)
	keys := rediscmd.Of(second).KeysIn(second)
	return slices.ContainsFunc(rediscmd.Of(first).KeysIn(first), func(key string) bool { return slices.Contains(keys, key) })
}

// readsOnly reports whether a command reads keys and writes none.
func readsOnly(command string) bool {
	list := words(command)
	if len(list) == 0 {
		return false
	}
	c := rediscmd.Of(list)
	return c != nil && !c.MayWrite() && !c.RunsScript() && len(c.KeysIn(list)) > 0
}

// refused reports whether a server refused a command that the client had sent before, between two times.
func (j *judgement) refused(client, command string, from, to time.Duration) bool {
	for _, e := range j.h.Events {
		if e.Kind == checker.Reply && e.Client == client && e.Command == command && e.Time >= from && e.Time <= to && (e.Reply == "(nil)" || e.Reply == "(integer) 0") {
			return true
		}
	}
	return false
}

// left returns, as a clause, which command of a failed acquire made the key the client's, and how it was
// answered; empty if no answer came.
func (j *judgement) left(client string, from, to time.Duration) string {
	var got checker.Event
	for i, e := range j.h.Events {
		switch {
		case e.Time < from || e.Time > to || e.Client != client:
		case e.Kind == checker.State && e.Cause == checker.ByCommand && e.Owner == client && got.Kind == "":
			got = j.requestOf(i)
		case e.Kind == checker.Reply && got.Kind != "" && e.Node == got.Node && e.Command == got.Command:
			return fmt.Sprintf("%s's %s made the key its own and was answered %s; the acquire failed and left the key", client, got.Command, e.Reply)
		}
	}
	return ""
}

// asked returns the last request of a client between two times that does not only set up a connection, and
// how it was answered, as a clause: "SET lock A1 NX, answered (nil)"; empty if it sent none.
func (j *judgement) asked(client string, from, to time.Duration) string {
	var last checker.Event
	answer := ""
	for _, e := range j.h.Events {
		switch {
		case e.Client != client || e.Time < from || e.Time > to:
		case e.Kind == checker.Request && !setsUp(e.Command):
			last, answer = e, "not answered"
		case e.Kind == checker.Reply && last.Kind != "" && e.Node == last.Node && e.Command == last.Command:
			answer = "answered " + e.Reply
		}
	}
	if last.Kind == "" {
		return ""
	}
	return last.Command + ", " + answer
}

// silence returns, as a clause, a time longer than a lease in which the only node had no key of the lock and
// the client, whose acquire waited between two times, did not ask for it; empty if there is none.
func (j *judgement) silence(client string, from, to time.Duration) (found string) {
	if len(j.nodes) != 1 {
		return ""
	}
	free := time.Duration(0) // since when the key is gone; never while it is there
	asked, last := from, "called"
	check := func(until time.Duration) {
		if found == "" && free != never && until-max(free, asked) > j.h.Meta.TTL {
			found = fmt.Sprintf("the lock was free from %s, and %s, which had %s at %s, sent no request before %s: bound the pause between two attempts, and the wait for a message", at(free), client, last, at(asked), at(until))
		}
	}
	for _, e := range j.h.Events {
		if e.Time > to {
			break
		}
		switch {
		case e.Kind == checker.State && e.Value == "":
			free = e.Time
		case e.Kind == checker.State:
			check(e.Time)
			free = never
		case e.Kind == checker.Request && e.Client == client && e.Time >= from && !setsUp(e.Command):
			check(e.Time)
			asked, last = e.Time, "asked"
		}
	}
	check(to)
	return found
}

// given returns, as a clause, the time to live that the acquire which returned at an index gave the key, if
// it ends before a time, or else the acquire's last request; empty if neither is known.
func (j *judgement) given(held int, before time.Duration) string {
	ret := j.h.Events[held]
	for i := held - 1; i >= 0; i-- {
		e := j.h.Events[i]
		if e.Kind == checker.Invoke && e.Call == ret.Call {
			break
		}
		if e.Kind == checker.State && e.Cause == checker.ByCommand && e.Client == ret.Client && e.Value != "" {
			if e.Expires == 0 || e.Expires >= before {
				return ""
			}
			how := fmt.Sprintf("%s's %s at %s gave the key %s", ret.Client, j.requestOf(i).Command, at(e.Time), at(e.Expires-e.Time))
			if e.Expires-e.Time < j.h.Meta.TTL*9/10 {
				how += fmt.Sprintf(" and not %s; if that is a lease of the lock's own, give it as the TTL: --ttl, or Subject.TTL", at(j.h.Meta.TTL))
			}
			return how
		}
	}
	if asked := j.asked(ret.Client, j.invoked(held), ret.Time); asked != "" {
		return fmt.Sprintf("no key was there after %s's last request, %s", ret.Client, asked)
	}
	return ""
}

// maker returns the request that made the key the client's before an event, as a clause with a comma on
// either side; empty if there is none.
func (j *judgement) maker(client string, before int) string {
	for i := before - 1; i >= 0; i-- {
		if e := j.h.Events[i]; e.Kind == checker.State && e.Cause == checker.ByCommand && e.Owner == client && e.Client == client {
			return ", which " + j.requestOf(i).Command + " had made,"
		}
	}
	return ""
}

// within returns the operation of the client of an event that is under way, as a clause: " in its release";
// empty if there is none.
func (j *judgement) within(event int) string {
	for _, op := range []checker.Op{checker.Release, checker.Extend, checker.Acquire, checker.TryAcquire} {
		if j.busy(j.h.Events[event].Client, event, op) {
			return fmt.Sprintf(" (in its %s)", op)
		}
	}
	return ""
}
