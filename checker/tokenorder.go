package checker

import (
	"sort"
)

// TokenOrder: see [Descriptions].
const TokenOrder Anomaly = "token-order"

var tokenOrderEntry = Description{
	Name: TokenOrder, Letter: "K", Short: "token", Class: Safety,
	Meaning: "a later acquire got a fencing token that was no larger than an earlier one",
	find:    tokenOrder,
}

// tokenOrder finds the acquires whose fencing token is too small: a larger token had been returned
// before the acquire was called, or the same token had been returned at any time.
func tokenOrder(f *index, yield func(*Witness) bool) {
	var order, largest []int   // calls that got a token, by return; for each prefix, the one with the largest
	given := map[int64]*call{} // the first call that got each token
	for _, at := range f.acquires {
		c := &f.calls[at]
		token := f.tokenOf(c)
		if token == 0 {
			continue
		}
		var before *call // the acquire that shows the disorder
		if n := sort.Search(len(order), func(k int) bool { return f.calls[order[k]].end > c.invoke }); n > 0 {
			if b := &f.calls[largest[n-1]]; f.tokenOf(b) > token {
				before = b
			}
		}
		// Of two acquires with the same token, one was granted later; either order is a violation.
		first, again := given[token]
		switch {
		case !again:
			given[token] = c
		case token != c.token && before == nil:
			before = first
		}
		if before != nil && !yield(f.disorder(before, c)) {
			return
		}
		if k := len(order); k > 0 && f.tokenOf(&f.calls[largest[k-1]]) >= token {
			largest = append(largest, largest[k-1])
		} else {
			largest = append(largest, at)
		}
		order = append(order, at)
	}
}

// tokenOf returns the fencing token that an acquire got; 0 if it got none.
func (f *index) tokenOf(c *call) int64 {
	if c.result != OK {
		return 0
	}
	return f.events[c.end].Token
}

func (f *index) disorder(before, c *call) *Witness {
	whose := f.name(before.client)
	if before.client == c.client {
		whose += " itself"
	}
	return witness(f.sprintf("%s got fencing token %d at %s by an acquire that it had called at %s, although %s had got %d at %s.",
		f.name(c.client), f.tokenOf(c), seconds(c.to), seconds(c.from), whose, f.tokenOf(before), seconds(before.to)),
		before.end, c.end)
}
