package linear

import (
	"fmt"
	"slices"
)

// issued is the state of a fenced lock's tokens.
type issued struct {
	largest  Event // the acquire that returned the largest token, or the use that proved it
	accepted Event // the accepted use with the largest token
	// recent and older hold the tokens issued since the oldest open acquire, which cannot have got
	// any of them; tokens issued before its invocation are smaller. When no acquire invoked before
	// the current turn is open, older is dropped and a new turn begins.
	recent, older   map[int64]Event
	turn            int
	pending, before int // number of open acquires invoked in this turn, and before it
	// turned reports that a token was issued out of the order of returns, leased that a lease was
	// returned. If both are set, one order must explain tokens and leases; otherwise the order of
	// returns does.
	turned, leased bool
}

// A prior is the state at the invocation of an acquire.
type prior struct {
	Event     // the acquire with the largest token so far
	turn  int // the turn of issued
}

// tokens is the token state of one client.
type tokens struct {
	called prior
	mine   int64   // the largest token that an acquire returned
	proven []int64 // larger tokens that a use proved
	unsure []prior // for the acquires of unknown outcome; their tokens never decrease
	// missing reports that an acquire returned no token.
	missing bool
}

func (c *Checker) tokensCalled(o *owner) {
	t := &o.slots[0].tokens
	if o.tokens == nil {
		o.tokens = &tokens{}
	}
	o.tokens.called = prior{t.largest, t.turn}
	t.pending++
}

func (c *Checker) tokensReturned(o *owner, e *Event) {
	t := &o.slots[0].tokens
	switch e.Phase {
	case ReturnUnknown:
		o.tokens.unsure = append(o.tokens.unsure, o.tokens.called)
		return
	case ReturnOK:
		if e.Token != 0 {
			c.issue(o, e, &o.tokens.called.Event)
			break
		}
		// A missing token is unknown: any token may have been issued.
		o.tokens.missing = true
	}
	t.settle(o.tokens.called.turn)
}

func missing(e *Event) string {
	where := ""
	if e.Line > 0 {
		where = fmt.Sprintf("line %d: ", e.Line)
	}
	return where + at(e) + " acquired without a token, so whether tokens grow is not known"
}

// bind records that a token came out of turn, or that a lease was returned.
func (c *Checker) bind(o *owner, turned, leased bool) {
	s := o.slots[0]
	t := &s.tokens
	t.turned, t.leased = t.turned || turned, t.leased || leased
	if t.turned && t.leased {
		c.markUndecided(s, "whether one order explains both tokens and leases is not settled")
	}
}

// settle records that an acquire invoked in the given turn is no longer open.
func (t *issued) settle(turn int) {
	if turn == t.turn {
		t.pending--
	} else {
		t.before--
	}
	if t.before == 0 {
		t.recent, t.older = t.older, t.recent
		clear(t.recent)
		t.before, t.pending = t.pending, 0
		t.turn++
	}
}

// issue judges token e.Token of an acquire that was invoked when before had the largest token.
func (c *Checker) issue(o *owner, e, before *Event) {
	t := &o.slots[0].tokens
	if e.Op == Use {
		o.tokens.proven = append(o.tokens.proven, e.Token)
	} else if e.Token > o.tokens.mine {
		o.tokens.mine = e.Token
		o.tokens.proven = slices.DeleteFunc(o.tokens.proven, func(t int64) bool { return t <= e.Token })
	}
	earlier, again := t.recent[e.Token]
	if !again {
		earlier, again = t.older[e.Token]
	}
	switch {
	case before.Phase != 0 && e.Token <= before.Token:
		c.violate(Violation{Rule: TokenOrder, Key: o.key, Events: []Event{*before, *e},
			Certain: c.opts.Skew == 0, Message: sayTokenOrder(before, e)})
	case again:
		c.violate(Violation{Rule: TokenOrder, Key: o.key, Events: []Event{earlier, *e}, Certain: true, Message: sayTokenOrder(&earlier, e)})
	}
	if e.Op == Use || t.largest.Phase != 0 && e.Token < t.largest.Token {
		c.bind(o, true, false)
	}
	if t.largest.Phase == 0 || e.Token > t.largest.Token {
		t.largest = *e
	}
	if t.recent == nil {
		t.recent = map[int64]Event{}
	}
	t.recent[e.Token] = *e
}

// use judges an accepted use of a token.
func (c *Checker) use(o *owner, e *Event) {
	t := &o.slots[0].tokens
	if o.tokens == nil {
		o.tokens = &tokens{}
	}
	if e.Token > o.tokens.mine && e.Client != "" && !slices.Contains(o.tokens.proven, e.Token) {
		// Of the acquires that can have issued it, use the latest: the earlier ones remain for
		// smaller tokens, and larger tokens can come from any that remain.
		u := o.tokens.unsure
		i := len(u) - 1
		for i >= 0 && u[i].Phase != 0 && u[i].Token >= e.Token {
			i--
		}
		switch {
		case o.op == Acquire || o.op == TryAcquire:
			c.markUndecided(o.slots[0], "whether an acquire under way has given a token that is used is not settled")
		case i >= 0:
			before := u[i]
			o.tokens.unsure = append(u[:i:i], u[i+1:]...)
			o.unsure = max(0, o.unsure-1)
			o.slots[0].unsure--
			c.issue(o, e, &before.Event)
			t.settle(before.turn)
		case o.tokens.missing:
			c.issue(o, e, &Event{})
		case len(u) > 0:
			c.violate(Violation{Rule: TokenOrder, Key: o.key, Events: []Event{u[0].Event, *e}, Certain: c.opts.Skew == 0, Message: sayTokenOrder(&u[0].Event, e)})
		default:
			c.violate(Violation{Rule: TokenNotIssued, Key: o.key, Events: []Event{*e},
				Certain: c.opts.Skew == 0, Message: sayTokenNotIssued(e)}) // the resource's clock is not its client's
		}
	}
	if t.accepted.Phase != 0 && e.Token < t.accepted.Token {
		certain := e.Time-t.accepted.Time > 2*c.opts.Skew || c.opts.Skew == 0
		c.violate(Violation{Rule: TokenBack, Key: o.key, Events: []Event{t.accepted, *e}, Certain: certain, Message: sayTokenBack(&t.accepted, e)})
		return
	}
	t.accepted = *e
}
