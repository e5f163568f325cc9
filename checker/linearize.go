package checker

import (
	"fmt"
	"slices"

	"github.com/lockfault/lockfault/checker/linear"
)

// A Conflict is the reason why a history has no legal order.
type Conflict struct {
	// Events are indices into the history, in ascending order: the events that no legal order can
	// contain, such as the returns of two acquires, and a loss reported to the client between them.
	// Events is empty if the history is inconsistent or no verdict was reached.
	Events []int `json:"events"`
	// Message is the reason in one plain sentence.
	Message string `json:"says"`
}

// Linearize returns the reason why the operations of a history have no legal order under what the
// lock promises. The result is nil if the history is linearizable. docs/anomalies.md describes the
// promises; package linear decides. Linearize changes nothing, never panics and may be called
// concurrently.
func Linearize(h History) *Conflict {
	events := operations(h, true)
	lease := h.Meta.HonourValidity && slices.ContainsFunc(h.Events, func(e Event) bool { return e.Kind == Return && e.Until > 0 })
	r := linear.Result{Verdict: linear.Unknown}
	if lease {
		r = linear.Check(linear.Lease(linear.Believed), without(events, linear.Use), linear.Options{})
	}
	switch {
	case !h.Meta.Fenced:
	case !lease:
		r = linear.Check(linear.MutexTokens(), without(events, linear.Extend), linear.Options{})
	case r.Verdict == linear.Valid: // the orders of holds and of tokens are separate with leases
		r = linear.Check(linear.Fenced(), events, linear.Options{})
	}
	// No lock promises anything about an owner that acquires again, so Reacquire is no conflict.
	// Where tokens or leases leave the verdict open, the holds alone may decide.
	if r.Verdict == linear.Unknown || r.Verdict == linear.Invalid && r.Violations[0].Rule == linear.Reacquire {
		r = linear.Check(linear.Reentrant(0), without(events, linear.Extend, linear.Use), linear.Options{})
	}
	switch r.Verdict {
	case linear.Valid:
		return nil
	case linear.Invalid:
		return conflict(h, &r.Violations[0], lease)
	}
	return &Conflict{Events: []int{}, Message: "No legal order is known: " + r.Reason + "."}
}

// conflict returns a violation as a Conflict. Without judged leases (lease is false), holds end
// where clients ended them, and the message is shorter.
func conflict(h History, v *linear.Violation, lease bool) *Conflict {
	c := &Conflict{Message: v.Message}
	for _, e := range v.Events {
		c.Events = append(c.Events, e.Line-1)
	}
	slices.Sort(c.Events)
	c.Events = slices.Compact(c.Events)
	if v.Rule != linear.Overlap {
		return c
	}
	from := c.Events[0]
	first, second := &h.Events[from], &h.Events[c.Events[1]]
	if !first.Op.takes() || !second.Op.takes() {
		return c // a release or an extend proves the hold
	}
	b, a := fmt.Sprintf("%s acquired at %s", second.Client, seconds(second.Time)), fmt.Sprintf("%s, who had acquired at %s, had yet to release", first.Client, seconds(first.Time))
	told := slices.IndexFunc(h.Events[from:c.Events[1]], func(e Event) bool { return e.Kind == Lost && e.Client == first.Client })
	switch {
	case told >= 0:
		c.Events = slices.Insert(c.Events, 1, from+told)
		c.Message = fmt.Sprintf("%s, after %s's lock had told it at %s that it was lost; but %s, and in a legal order nothing but a release or a crash ends a hold.",
			b, first.Client, seconds(h.Events[from+told].Time), a)
	case !lease:
		c.Message = fmt.Sprintf("%s while %s.", b, a)
	}
	return c
}
