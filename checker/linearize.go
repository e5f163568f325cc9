package checker

import (
	"fmt"
	"slices"

	"github.com/lockfault/lockfault/checker/linear"
)

// A Conflict is why a history has no legal order.
type Conflict struct {
	// Events are indices into the history, in ascending order: those that no legal
	// order can hold, such as the returns of two acquires, and the loss that a client
	// was told meanwhile if there is one. There are none if the history makes no sense.
	Events []int `json:"events"`
	// Message is the reason in one plain sentence.
	Message string `json:"says"`
}

// Linearize returns why what clients were told has no legal order under a lock that
// does what this one promises; nil if it has one: the history is linearizable.
// docs/anomalies.md says what is promised, and package linear decides. Like [Check]
// it changes nothing, never panics and may be called concurrently.
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
	case r.Verdict == linear.Valid: // who holds and the tokens are two orders there
		r = linear.Check(linear.Fenced(), events, linear.Options{})
	}
	// No lock says whether its owner may acquire it again, so that is no conflict;
	// and where tokens or leases leave it open, holds alone may tell.
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

// conflict says a violation in the words of verdicts. Where no lease was judged, holds end
// where clients ended them, which takes fewer words.
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
		return c // a release or an extend proves that a hold was there
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
