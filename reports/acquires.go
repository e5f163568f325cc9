package reports

import (
	"fmt"
	"slices"

	"github.com/lockfault/lockfault/checker"
	"github.com/lockfault/lockfault/internal/leases"
)

// Acquires says which acquires of a history succeeded. An acquire is named by its client and its
// number among the client's acquires, as in "A1".
type Acquires struct {
	Acquired []string `json:"acquired,omitempty"`
	// Beside holds the Acquired ones whose hold began while another client held.
	Beside []string `json:"beside,omitempty"`
}

// acquiresOf returns the acquires of a history with these holds.
func acquiresOf(h checker.History, holds []checker.Hold) (all Acquires) {
	var beside []bool // by hold
	end := -1         // the latest end of the holds before
	for _, b := range holds {
		beside = append(beside, b.Began < end)
		end = max(end, b.Ended)
	}
	called := map[string]int{}
	for i, e := range h.Events {
		if e.Op != checker.Acquire {
			continue
		}
		switch {
		case e.Kind == checker.Invoke:
			called[e.Client]++
		case e.Kind == checker.Return && e.Result == checker.OK:
			name := fmt.Sprintf("%s%d", e.Client, called[e.Client])
			all.Acquired = append(all.Acquired, name)
			of := slices.IndexFunc(holds, func(b checker.Hold) bool { return b.Client == e.Client && b.Began <= i && i < b.Ended })
			if of >= 0 && beside[of] {
				all.Beside = append(all.Beside, name)
			}
		}
	}
	return all
}

// lacking returns an acquire that succeeded in another cell while no client held, and failed in this
// one; "" if there is none.
func (a Acquires) lacking(other Acquires) string {
	for _, name := range other.Acquired {
		if !slices.Contains(other.Beside, name) && !slices.Contains(a.Acquired, name) {
			return name
		}
	}
	return ""
}

// A ReferenceLock is what the reference lock of a class did under a scenario.
type ReferenceLock struct {
	Strategy string `json:"strategy"`
	// Refuses is a clause that says why locks of the class refuse acquires that the reference lock
	// grants; empty if the class documents no refusal.
	Refuses string `json:"refuses,omitempty"`
	Acquires
}

// NotBetter describes a cell that does not show what it may show, and whose lock does less than others.
// A lock that no client gets shows no overlap either.
type NotBetter struct {
	Outcome   NotBetterOutcome  `json:"outcome"`
	Anomalies []checker.Anomaly `json:"anomalies"`
	// Reason is a clause that follows "but".
	Reason string `json:"reason"`
}

// A NotBetterOutcome says why a cell without some anomalies is not better than one with them.
type NotBetterOutcome string

// The outcomes of cells that are neither better nor worse.
const (
	Different NotBetterOutcome = "different" // an acquire failed that the reference lock grants while no client holds
	Refused   NotBetterOutcome = "refused"   // the same, and the class documents that it refuses acquires
)

// notBetter says why a cell that does not show some of the anomalies that it may show is no better for
// that; nil if it is better.
func (c Cell) notBetter(missing []checker.Anomaly) *NotBetter {
	if c.Reference == nil {
		return &NotBetter{Different, missing, "it was compared with no other lock of its class"}
	}
	name := c.lacking(c.Reference.Acquires)
	if name == "" {
		return nil
	}
	outcome, reason := Different, fmt.Sprintf("the acquire %s failed, which succeeds with %s", name, c.Reference.Strategy)
	if why := c.Reference.Refuses; why != "" {
		outcome, reason = Refused, reason+": "+why
	}
	return &NotBetter{outcome, missing, reason}
}

// earned reports whether a cell without an anomaly of another cell is better than that one: it has no
// bug, and each acquire that succeeded there while no client held succeeded here.
func earned(better, than Cell) bool {
	return better.lacking(than.Acquires) == "" && len(leases.Bugs(better.Findings)) == 0
}
