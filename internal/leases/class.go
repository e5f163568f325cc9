package leases

import (
	"slices"

	"github.com/lockfault/lockfault/checker"
	"github.com/lockfault/lockfault/strategies"
)

// A Class is a set of promises that locks have in common. A strategy declares its class by a tag of
// that name; without one, the class follows from what else is known of the lock.
type Class string

// The classes of docs/leases.md.
const (
	Lease            Class = "lease"
	Validity         Class = "validity"
	Notifies         Class = "told"
	Watchdog         Class = "watchdog"
	WatchdogNotifies Class = "watchdog-told"
	Reentrant        Class = "reentrant"
	Fencing          Class = "fencing"
	Queue            Class = "queue"
	Replicas         Class = "replicas"
	Forever          Class = "forever"
	Majority         Class = "majority"
	MajorityWatchdog Class = "majority-watchdog"
)

// classes lists what docs/leases.md says of the classes, in its order.
var classes = []struct {
	name Class
	// reference is the built-in strategy that grants what a lock of the class should grant.
	reference string
	// refuses completes "the class documents that …"; empty if it documents no refusal.
	refuses string
}{
	{Lease, "set-nx-px-lua", ""},
	{Validity, "set-nx-px-lua", ""},
	{Notifies, "set-nx-px-lua", ""},
	{Watchdog, "redisson", ""},
	{WatchdogNotifies, "redisson", ""},
	{Reentrant, "redisson", ""},
	{Fencing, "fenced", ""},
	{Queue, "set-nx-px-lua", ""},
	{Replicas, "set-nx-px-lua", "a lock that waits for replicas refuses to be acquired while too few confirm"},
	{Forever, "set-nx-px-lua", ""},
	{Majority, "redlock", ""},
	{MajorityWatchdog, "redlock", ""},
}

// Classes returns all classes in the order of docs/leases.md.
func Classes() (list []Class) {
	for _, c := range classes {
		list = append(list, c.name)
	}
	return list
}

// Reference returns the name of the class's reference lock, a built-in strategy: a lock that shows
// less is better only if it grants what the reference lock grants. Refuses says why the class refuses
// acquires nevertheless; empty if it documents no such refusal.
func (c Class) Reference() (strategy, refuses string) {
	for _, of := range classes {
		if of.name == c {
			return of.reference, of.refuses
		}
	}
	return "", ""
}

// ClassNames returns the names of all classes: the tags that declare them.
func ClassNames() (names []string) {
	for _, c := range Classes() {
		names = append(names, string(c))
	}
	return names
}

// A Lock is what is declared of a lock.
type Lock struct {
	Tags []string // of its strategy
}

// LockOf returns what a strategy declares.
func LockOf(s strategies.Strategy) Lock { return Lock{Tags: s.Tags} }

// Declared returns the classes among a strategy's tags, of which there should be one at most.
func Declared(tags []string) []Class {
	return slices.DeleteFunc(Classes(), func(c Class) bool { return !slices.Contains(tags, string(c)) })
}

// ClassOf returns the class by which the lock is judged in a history: the declared one, or else the
// one that its tags and the history show.
func ClassOf(h checker.History, l Lock) (class Class, declared bool) {
	if list := Declared(l.Tags); len(list) > 0 {
		return list[0], true
	}
	has := func(tag string) bool { return slices.Contains(l.Tags, tag) }
	renews := has(strategies.TagRenewing) || renewsItself(h)
	switch {
	case has(strategies.TagReaped):
		return Forever, false
	case has(strategies.TagQuorum) && renews:
		return MajorityWatchdog, false
	case has(strategies.TagQuorum):
		return Majority, false
	case renews && has(strategies.TagNotifying):
		return WatchdogNotifies, false
	case renews:
		return Watchdog, false
	case has(strategies.TagNotifying):
		return Notifies, false
	case returns(h, func(e checker.Event) bool { return e.Until > 0 }):
		return Validity, false
	case has(strategies.TagFenced):
		return Fencing, false
	}
	return Lease, false
}

func returns(h checker.History, is func(checker.Event) bool) bool {
	return slices.ContainsFunc(h.Events, func(e checker.Event) bool { return e.Kind == checker.Return && is(e) })
}

// renewsItself reports whether a client prolonged its own key by a command that it sent outside all of
// its operations.
func renewsItself(h checker.History) bool {
	keys := map[[2]string]checker.Event{} // by node and server
	busy := map[string]bool{}             // clients with an operation under way
	var request checker.Event
	for _, e := range h.Events {
		switch e.Kind {
		case checker.Invoke:
			busy[e.Client] = true
		case checker.Return, checker.Crash, checker.Restart:
			busy[e.Client] = false
		case checker.Request:
			request = e
		case checker.State:
			key := [2]string{e.Node, e.Server}
			was := keys[key]
			keys[key] = e
			if e.Cause == checker.ByCommand && e.Owner != "" && e.Owner == e.Client && was.Owner == e.Owner && was.Value == e.Value &&
				e.Expires > was.Expires && was.Expires != 0 && !busy[e.Client] && request.Client == e.Client && request.Time == e.Time {
				return true
			}
		}
	}
	return false
}
