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

// lockOp returns the operation of a lock that an :f is, and false if it is none.
// It is an error if it looks as if it was meant to be one: to leave that out would
// change the history.
func lockOp(f []byte) (linear.Op, bool, error) {
	switch string(f) { // does not allocate
	case ":acquire", ":lock":
		return linear.Acquire, true, nil
	case ":release", ":unlock":
		return linear.Release, true, nil
	case ":try-acquire", ":try-lock", ":try":
		return linear.TryAcquire, true, nil
	case ":extend":
		return linear.Extend, true, nil
	case ":use":
		return linear.Use, true, nil
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

// meantFor returns the operation that a name was probably meant for: one that is
// near, one of which the name has a part, as in acquire-lock, or one that others
// call so; nothing if there is none.
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

// An IgnoredEvent is a kind of event that is about something else than a lock.
type IgnoredEvent struct {
	Name   string // its :f, such as ":read"; empty for all beyond the first few
	By     string // who is no client, such as ":nemesis"; empty for clients
	Events int
}

// ignoredCounts counts events by their names: of the first few, and of all the rest
// together, since a file may have as many names as lines.
type ignoredCounts struct {
	list []IgnoredEvent
	rest int
}

// fewOthers is how many names are counted apart.
const fewOthers = 32

// add counts an event of that :f and, unless it is a client's, of that :process.
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

// tellable reports whether the text is a keyword that has room on a line.
func tellable(text []byte) bool {
	_, ok := ednKeyword(text)
	return ok && len(text) <= 80 && plain(string(text))
}

// all returns what was counted, the most first.
func (o *ignoredCounts) all() []IgnoredEvent {
	list := slices.Clone(o.list)
	slices.SortStableFunc(list, func(a, b IgnoredEvent) int { return cmp.Compare(b.Events, a.Events) })
	if o.rest > 0 {
		list = append(list, IgnoredEvent{Events: o.rest})
	}
	return list
}

// namesOf returns the first few names, with commas between them.
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
