package soak

import (
	"slices"
	"time"

	"github.com/lockfault/lockfault/checker"
	"github.com/lockfault/lockfault/internal/leases"
)

// Counts holds the counts of a window.
type Counts struct {
	// Virtual is the duration of the window, in the time of its world.
	Virtual time.Duration `json:"virtual_ns"`
	// Acquired is the number of successful acquires, Failed the number of acquires that returned
	// without the lock, and Unknown the number of acquires with any other result.
	Acquired int `json:"acquired"`
	Failed   int `json:"failed"`
	Unknown  int `json:"unknown"`
	// Overlaps holds the duration of each overlap: a time in which two or more clients believed
	// that they held the lock.
	Overlaps []time.Duration `json:"overlaps_ns,omitempty"`
	// Updates is the number of updates that the resource accepted, and Refused the number that it
	// refused. Lost is the number of accepted updates that are not part of the final value, because
	// a later update was based on an older value.
	Updates int `json:"updates"`
	Refused int `json:"refused"`
	Lost    int `json:"lost"`
	// Outages holds the duration of each time, longer than a tenth of a lease, in which no client
	// held the lock although a client asked for it. A client that a server refused with an error
	// for good asks until its next acquire returns.
	Outages []time.Duration `json:"outages_ns,omitempty"`
	// Recoveries holds the time from the crash of the only holder to the next hold, for each such
	// crash that was followed by a hold.
	Recoveries []time.Duration `json:"recoveries_ns,omitempty"`
	// Anomalies is the number of witnesses of each anomaly.
	Anomalies map[checker.Anomaly]int `json:"anomalies,omitempty"`
	// Judged holds what the witnesses' occurrences mean by the class of the lock, for a lock that is
	// judged by its class.
	Judged map[checker.Anomaly]Judged `json:"judged,omitempty"`
	// First is the earliest time at which a witness of each anomaly was complete.
	First map[checker.Anomaly]time.Duration `json:"first_ns,omitempty"`
}

// Judged says what the occurrences of an anomaly mean. At most 200 occurrences in a window are judged.
type Judged struct {
	Occurrences map[leases.Outcome]int `json:"occurrences"`
	// Outcome is the worst one, and Reason and At are those of its first occurrence.
	Outcome leases.Outcome `json:"outcome"`
	Reason  string         `json:"reason"`
	At      time.Duration  `json:"at_ns"`
}

// Judge judges the anomalies of the history that was counted by the class of the lock.
func (c *Counts) Judge(h checker.History, l leases.Lock) {
	c.Judged = map[checker.Anomaly]Judged{}
	for _, f := range leases.Judge(h, l) {
		c.Judged[f.Anomaly] = Judged{f.Occurrences, f.Outcome, f.Reason, timeOf(h, f.Witness)}
	}
}

// timeOf returns the time of the last event of a witness.
func timeOf(h checker.History, w checker.Witness) (at time.Duration) {
	for _, e := range w.Events {
		if e < len(h.Events) {
			at = max(at, h.Events[e].Time)
		}
	}
	return at
}

// Count counts the events of a history with the given verdict, in time linear in the number of
// events.
func Count(h checker.History, v checker.Verdict) Counts {
	c := Counts{Anomalies: map[checker.Anomaly]int{}, First: map[checker.Anomaly]time.Duration{}}
	if n := len(h.Events); n > 0 {
		c.Virtual = h.Events[n-1].Time
	}
	c.updates(h.Events)
	c.beliefs(h)
	for _, w := range v.Witnesses {
		c.Anomalies[w.Anomaly]++
		at := timeOf(h, w)
		if first, ok := c.First[w.Anomaly]; !ok || at < first {
			c.First[w.Anomaly] = at
		}
	}
	return c
}

// updates counts acquires, and follows the value of the resource: each update is based on the value
// at the time when its client acquired the lock.
func (c *Counts) updates(events []checker.Event) {
	parents := []int{-1}      // index of the base value of each value; -1 for the initial one
	now := 0                  // index of the current value
	found := map[string]int{} // index of the value that each client's update is based on
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

// beliefs computes overlaps, outages and recoveries from the holds and the acquires in progress.
func (c *Counts) beliefs(h checker.History) {
	holds := checker.Holds(h)
	type change struct {
		at    time.Duration
		event int
		by    int // change in the number of holds
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
	together, alone, died := time.Duration(-1), time.Duration(-1), time.Duration(-1) // when the current period began; -1 if there is none
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
		case e.Kind == checker.Return && checker.DefiniteError(e.Error) != "" && asking[e.Client]:
			// the server would refuse it at any time: the client goes on asking
		case e.Kind == checker.Return || e.Kind == checker.Crash:
			if delete(asking, e.Client); len(asking) == 0 {
				if alone >= 0 && believers == 0 && e.Time-alone > shortest {
					c.Outages = append(c.Outages, e.Time-alone)
				}
				alone = -1
			}
		}
	}
	if together >= 0 && believers >= 2 {
		c.Overlaps = append(c.Overlaps, c.Virtual-together)
	}
	if alone >= 0 && believers == 0 && c.Virtual-alone > shortest {
		c.Outages = append(c.Outages, c.Virtual-alone)
	}
}
