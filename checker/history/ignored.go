package history

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/lockfault/lockfault/checker/linear"
	"github.com/lockfault/lockfault/internal/suggest"
)

// lockOps maps each :f of a lock operation to the operation.
var lockOps = map[string]linear.Op{
	":acquire": linear.Acquire, ":lock": linear.Acquire, ":release": linear.Release, ":unlock": linear.Release,
	":try-acquire": linear.TryAcquire, ":try-lock": linear.TryAcquire, ":try": linear.TryAcquire,
	":extend": linear.Extend, ":use": linear.Use,
}

// lockOp returns the lock operation of an :f, and false for any other :f. An :f that resembles a
// lock operation is an error, because ignoring it would change the history.
func lockOp(f []byte) (linear.Op, bool, error) {
	if op, ok := lockOps[string(f)]; ok { // does not allocate
		return op, true, nil
	}
	name, ok := ednKeyword(f)
	if !ok {
		return 0, false, errors.New("it has no :f: there are :acquire, :try-acquire, :release, :extend and :use")
	}
	if meant := meantFor(strings.ToLower(string(name))); meant != "" {
		return 0, false, fmt.Errorf("no operation of a lock is called %s, did you mean :%s?", shown(f), meant)
	}
	return 0, false, nil
}

// meantFor returns the operation that a name probably stands for: one with a similar name, one that
// is a part of the name, as in acquire-lock, or one for which the name is a common synonym; empty
// if there is none.
func meantFor(name string) string {
	ops := []string{"acquire", "release", "try-acquire", "extend", "use", "lock", "unlock", "try-lock", "try"}
	if meant, ok := suggest.Of(name, ops); ok {
		return meant
	}
	for _, part := range strings.FieldsFunc(name, func(c rune) bool { return c < 'a' || 'z' < c }) {
		switch part {
		case "renew", "refresh", "prolong", "keepalive":
			return "extend"
		case "acquire", "release", "extend", "unlock", "lock":
			return part
		}
	}
	return ""
}

// An IgnoredEvent is a kind of event that is not an operation of a lock.
type IgnoredEvent struct {
	Name   string // its :f, such as ":read"; empty for all kinds beyond the first few
	By     string // the process, if it is not a client, such as ":nemesis"; empty for clients
	Events int
}

// ignoredCounts counts events by name. Only the first few names are counted separately, because a
// file may have as many names as lines.
type ignoredCounts struct {
	list []IgnoredEvent
	rest int
}

// fewOthers is the number of names that are counted separately.
const fewOthers = 32

// add counts an event with the given :f and, unless a client did it, the given :process.
func (o *ignoredCounts) add(f, by []byte) {
	for i := range o.list {
		if other := &o.list[i]; other.Name == string(f) && other.By == string(by) { // does not allocate
			other.Events++
			return
		}
	}
	if len(o.list) == fewOthers || !tellable(f) || len(by) > 0 && !tellable(by) {
		o.rest++
		return
	}
	o.list = append(o.list, IgnoredEvent{string(f), string(by), 1})
}

// tellable reports whether the text is a keyword short enough for a message.
func tellable(text []byte) bool {
	_, ok := ednKeyword(text)
	return ok && len(text) <= 80 && plain(string(text))
}

// all returns the counts, the largest first.
func (o *ignoredCounts) all() []IgnoredEvent {
	list := slices.Clone(o.list)
	slices.SortStableFunc(list, func(a, b IgnoredEvent) int { return cmp.Compare(b.Events, a.Events) })
	if o.rest > 0 {
		list = append(list, IgnoredEvent{Events: o.rest})
	}
	return list
}

// namesOf returns the first few names, separated by commas.
func namesOf(list []IgnoredEvent) string {
	var names []string
	for _, other := range list {
		switch {
		case len(names) == 4:
			return strings.Join(names, ", ") + " and others"
		case other.Name == "":
			names = append(names, "others")
		default:
			names = append(names, other.Name)
		}
	}
	return strings.Join(names, ", ")
}
