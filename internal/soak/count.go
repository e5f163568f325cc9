package soak

import (
	"slices"
	"time"

	"github.com/lockfault/lockfault/checker"
)

// Counts is what is counted of a window.
type Counts struct {
	// Virtual is the time that the window took in its world.
	Virtual time.Duration `json:"virtual_ns"`
	// Acquired is how many acquires succeeded, Failed how many came back without the lock, and
	// Unknown how many ended otherwise.
	Acquired int `json:"acquired"`
	Failed   int `json:"failed"`
	Unknown  int `json:"unknown"`
	// Overlaps are how long two clients or more believed at once, each time.
	Overlaps []time.Duration `json:"overlaps_ns,omitempty"`
	// Updates is how many updates the resource accepted, Refused how many it refused, and Lost how
	// many of the accepted ones are not in what it is in the end: another was made of what was
	// there before, and put in its place.
	Updates int `json:"updates"`
	Refused int `json:"refused"`
	Lost    int `json:"lost"`
	// Outages are how long nobody believed though somebody asked, each time that this was longer
	// than a tenth of a lease.
	Outages []time.Duration `json:"outages_ns,omitempty"`
	// Recoveries are how long it took from the death of a holder until somebody believed, each time
	// that somebody did.
	Recoveries []time.Duration `json:"recoveries_ns,omitempty"`
	// Anomalies are how many of each the checker named.
	Anomalies map[checker.Anomaly]int `json:"anomalies,omitempty"`
	// First is when the first of each was proved.
	First map[checker.Anomaly]time.Duration `json:"first_ns,omitempty"`
}

// Count counts what is in a history, of which the checker said that. It is linear in the events.
func Count(h checker.History, v checker.Verdict) Counts {
	c := Counts{Anomalies: map[checker.Anomaly]int{}, First: map[checker.Anomaly]time.Duration{}}
	if n := len(h.Events); n > 0 {
		c.Virtual = h.Events[n-1].Time
	}
	c.updates(h.Events)
	c.beliefs(h)
	for _, w := range v.Witnesses {
		c.Anomalies[w.Anomaly]++
		at := time.Duration(0)
		for _, e := range w.Events {
			if e < len(h.Events) {
				at = max(at, h.Events[e].Time)
			}
		}
		if first, ok := c.First[w.Anomaly]; !ok || at < first {
			c.First[w.Anomaly] = at
		}
	}
	return c
}

// updates counts acquires, and follows what the resource is made of: each update is made of what
// was there when its client got the lock, and of itself.
func (c *Counts) updates(events []checker.Event) {
	parents := []int{-1}      // of each state of the resource, the first is nobody's
	now := 0                  // the state that it is in
	found := map[string]int{} // the state that each client made its update of
	for _, e := range events {
		switch {
		case e.Kind == checker.Return && (e.Op == checker.Acquire || e.Op == checker.TryAcquire):
			switch e.Result {
			case checker.OK:
				c.Acquired++
				found[e.Client] = now
			case checker.Fail:
				c.Failed++
			default:
				c.Unknown++
			}
		case e.Kind == checker.Write && e.Accepted:
			c.Updates++
			parents = append(parents, found[e.Client])
			now = len(parents) - 1
			found[e.Client] = now
		case e.Kind == checker.Write:
			c.Refused++
		}
	}
	kept := 0
	for at := now; at > 0; at = parents[at] {
		kept++
	}
	c.Lost = c.Updates - kept
}

// beliefs follows who believes, and who asks.
func (c *Counts) beliefs(h checker.History) {
	holds := checker.Holds(h)
	type change struct {
		at    time.Duration
		event int
		by    int // how many more believe
		death bool
	}
	var list []change
	for _, hold := range holds {
		list = append(list, change{at: hold.Start, event: hold.Began, by: 1},
			change{at: hold.End, event: hold.Ended, by: -1, death: hold.By == checker.ByCrash})
	}
	slices.SortStableFunc(list, func(a, b change) int {
		if a.at != b.at {
			return int(max(-1, min(1, a.at-b.at)))
		}
		return a.event - b.event
	})
	shortest := h.Meta.TTL / 10
	believers, next := 0, 0
	asking := map[string]bool{}
	together, alone, died := time.Duration(-1), time.Duration(-1), time.Duration(-1) // since when; -1 is not
	apply := func(x change) {
		was := believers
		believers += x.by
		switch {
		case was < 2 && believers >= 2:
			together = x.at
		case was >= 2 && believers < 2:
			c.Overlaps = append(c.Overlaps, x.at-together)
		}
		if believers > 0 {
			if alone >= 0 && x.at-alone > shortest {
				c.Outages = append(c.Outages, x.at-alone)
			}
			alone = -1
			if died >= 0 && x.by > 0 {
				c.Recoveries = append(c.Recoveries, x.at-died)
				died = -1
			}
			return
		}
		if x.death {
			died = x.at
		}
		if len(asking) > 0 {
			alone = x.at
		}
	}
	for i, e := range h.Events {
		for next < len(list) && (list[next].at < e.Time || list[next].at == e.Time && list[next].event <= i) {
			apply(list[next])
			next++
		}
		switch {
		case e.Kind == checker.Invoke && (e.Op == checker.Acquire || e.Op == checker.TryAcquire):
			asking[e.Client] = true
			if believers == 0 && alone < 0 {
				alone = e.Time
			}
		case e.Kind == checker.Return || e.Kind == checker.Crash:
			if delete(asking, e.Client); len(asking) == 0 {
				if alone >= 0 && believers == 0 && e.Time-alone > shortest {
					c.Outages = append(c.Outages, e.Time-alone)
				}
				alone = -1
			}
		}
	}
	if together >= 0 && believers >= 2 && len(h.Events) > 0 {
		c.Overlaps = append(c.Overlaps, h.Events[len(h.Events)-1].Time-together)
	}
}
