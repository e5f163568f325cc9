package checker

import (
	"math"
	"slices"

	"github.com/lockfault/lockfault/checker/linear"
)

// Operations returns the events of a history, up to its End, that package linear judges:
// invocations, returns, crashes of clients, and the resource's replies to tokens. Line is the index
// of the event plus 1. The events equal those that package history reads from the history's file.
func Operations(h History) []linear.Event { return operations(h, false) }

// operations returns the events for package linear. If believed is true, holds end when belief
// ends, as docs/anomalies.md defines: a client stops relying on the lock when it calls release,
// whatever the result, and when it acquires again after a reported loss. A hold without a published
// validity lasts until one of these.
func operations(h History, believed bool) []linear.Event {
	var list []linear.Event
	gaveUp, lost := map[string]bool{}, map[string]bool{}
	for i, e := range h.upToEnd() {
		o := linear.Event{Time: e.Time, Client: e.Client, Op: ops[e.Op], Line: i + 1}
		switch e.Kind {
		case Invoke:
			o.Phase = linear.Invoke
			if believed && e.Op.takes() && lost[e.Client] {
				delete(lost, e.Client)
				list = append(list, linear.Event{Time: e.Time, Client: e.Client, Phase: linear.Crash, Line: i + 1})
			}
		case Return:
			o.Phase, o.Token = phases[e.Result], e.Token
			if e.Result == OK && e.Op != Release {
				o.Lease = e.Until
			}
			if e.Result == OK && e.Op.takes() {
				delete(lost, e.Client)
			}
			// A client that gave up did not learn that another client has the lock.
			if e.Result == Fail && e.Op == TryAcquire && gaveUp[e.Client] {
				o.Phase = linear.ReturnUnknown
			}
			switch {
			case !believed:
			case e.Op == Release && e.Result == Fail, e.Op == Extend && e.Until <= 0:
				o.Phase = linear.ReturnUnknown // leaves the previous lease as it is
			case e.Op.takes() && e.Until <= 0:
				o.Lease = math.MaxInt64
			}
		case Crash, Restart: // a restarted client has lost its holds, too
			o.Phase = linear.Crash
		case Write:
			if e.Token == 0 {
				continue
			}
			o.Op, o.Token, o.Phase = linear.Use, e.Token, linear.ReturnFail
			if e.Accepted {
				o.Phase = linear.ReturnOK
			}
		case Cancel:
			gaveUp[e.Client] = true
			continue
		case Lost:
			lost[e.Client] = true
			continue
		default:
			continue
		}
		if e.Kind == Invoke || e.Kind == Return {
			delete(gaveUp, e.Client)
		}
		list = append(list, o)
	}
	return list
}

var (
	ops    = map[Op]linear.Op{Acquire: linear.Acquire, TryAcquire: linear.TryAcquire, Release: linear.Release, Extend: linear.Extend}
	phases = map[Result]linear.Phase{OK: linear.ReturnOK, Fail: linear.ReturnFail, Unknown: linear.ReturnUnknown}
)

// without returns the events except those of the given operations.
func without(events []linear.Event, ops ...linear.Op) []linear.Event {
	return slices.DeleteFunc(slices.Clone(events), func(e linear.Event) bool { return slices.Contains(ops, e.Op) })
}
