package oracle

import (
	"slices"

	"github.com/lockfault/lockfault/checker"
)

// Doubtful reports whether the keys on the servers do not always identify the owner of the lock.
func Doubtful(h checker.History) bool {
	r, _ := relevant(h, nil)
	return r.doubtful()
}

func (r run) doubtful() bool {
	there := func(e checker.Event) bool { return e.Kind == checker.State && e.Value != "" }
	if slices.ContainsFunc(r.Events, func(e checker.Event) bool { return there(e) && e.Owner == "" }) {
		return true
	}
	known := slices.ContainsFunc(r.all, func(c call) bool { return r.begun(c) && r.keyed(c) })
	return slices.ContainsFunc(r.all, func(c call) bool {
		return c.takes() && c.result == checker.OK && (!known && !slices.ContainsFunc(r.Events[:c.end], there) || r.tookAway(c) || r.adopted(c))
	})
}

// adopted reports whether an acquire, of a client that held nothing, succeeded though no server had a key
// of its client, while a server had one of a client whose latest call was a release that succeeded.
func (r run) adopted(c call) bool {
	if !r.begun(c) {
		return false
	}
	adopted := false
	for _, e := range r.Events[:c.end] {
		if e.Kind != checker.State {
			continue
		}
		owner := r.key(e.Server, c.end).Owner
		if owner == c.client {
			return false
		}
		var last call
		for _, other := range r.all {
			if other.client == owner && other.invoke < c.end {
				last = other
			}
		}
		if owner != "" && last.op == checker.Release && last.end < c.end && last.result == checker.OK {
			adopted = true
		}
	}
	return adopted
}

// tookAway reports whether the last change that the caller of an acquire made to the key during the
// call was to remove it.
func (r run) tookAway(c call) bool {
	if r.hold(c.client, c.invoke) >= 0 {
		return false
	}
	took := false
	for i := c.invoke + 1; i < c.end; i++ {
		switch e := r.at(i); {
		case e.Kind != checker.State:
		case e.Owner == c.client:
			took = false
		case e.Cause == checker.ByCommand && e.Client == c.client && e.Value == "" && r.key(e.Server, i).Value != "":
			took = true
		}
	}
	return took
}
