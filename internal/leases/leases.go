// Package leases says what an anomaly of a lock means: a known limitation, which every lock of its
// class shows under that fault; an avoidable weakness, which better locks of the class do not show; or
// a bug. docs/leases.md has the classes, the reasons and the rules; this package decides by them.
//
// The unit of judgement is one occurrence of an anomaly. A history and what is declared of the lock
// come in; a finding for each anomaly goes out. All functions are pure and safe for concurrent use.
package leases

import (
	"fmt"
	"slices"
	"strings"

	"github.com/lockfault/lockfault/checker"
)

// An Outcome says what an anomaly means for a lock of its class.
type Outcome string

// The outcomes, the best first.
const (
	Limitation Outcome = "limitation" // every lock of the class shows it under that fault
	Weakness   Outcome = "weakness"   // better locks of the class avoid it
	Bug        Outcome = "bug"        // no fault of the run excuses it
)

// outcomes orders the outcomes, the best first.
var outcomes = []Outcome{Limitation, Weakness, Bug}

// Words returns the outcome as people say it; empty for none.
func (a Outcome) Words() string {
	return map[Outcome]string{Limitation: "known limitation", Weakness: "avoidable weakness", Bug: "bug"}[a]
}

// Valid reports whether the outcome is one of the above.
func (a Outcome) Valid() bool { return slices.Contains(outcomes, a) }

// Worse reports whether a is a worse outcome than b. Any outcome is worse than none.
func (a Outcome) Worse(b Outcome) bool { return slices.Index(outcomes, a) > slices.Index(outcomes, b) }

// A Finding is the judgement on one anomaly of a history. It is that of the worst occurrence.
type Finding struct {
	Anomaly checker.Anomaly `json:"anomaly"`
	Outcome Outcome         `json:"outcome"`
	// Reason completes the sentence "known limitation: …" or "bug: …". It names the fault that
	// excuses the anomaly, or says why none does.
	Reason string `json:"reason"`
	// Witness proves the worst occurrence, of those the first.
	Witness checker.Witness `json:"witness"`
	// Occurrences counts the occurrences by outcome.
	Occurrences map[Outcome]int `json:"occurrences"`
}

// wasHeld ends the reason of a finding that a held message excuses.
const wasHeld = " was held"

// ByHold reports whether a message that the script held excuses the finding.
func (f Finding) ByHold() bool { return strings.HasSuffix(f.Reason, wasHeld) }

// String returns the finding as a clause: "bug: overlap: B got the lock at 4.2s, within …".
func (f Finding) String() string {
	return fmt.Sprintf("%s: %s: %s", f.Outcome.Words(), f.Anomaly, f.Reason)
}

// mostOccurrences limits the occurrences of each anomaly that are judged.
const mostOccurrences = 200

// Judge returns a finding for each anomaly that [checker.Check] finds in the history, in the order of
// [checker.Anomalies].
func Judge(h checker.History, l Lock) []Finding {
	var list []Finding
	j := newJudgement(h, l)
	for _, w := range checker.Occurrences(h, mostOccurrences) {
		outcome, reason := j.judge(w)
		if n := len(list); n == 0 || list[n-1].Anomaly != w.Anomaly {
			list = append(list, Finding{w.Anomaly, outcome, reason, w, map[Outcome]int{}})
		}
		f := &list[len(list)-1]
		f.Occurrences[outcome]++
		if outcome.Worse(f.Outcome) {
			f.Outcome, f.Reason, f.Witness = outcome, reason, w
		}
	}
	return list
}

// LongestWait returns the longest time in which clients waited for a free lock while no fault lasted.
func LongestWait(h checker.History) (longest checker.FreeWait) {
	var faults []incident
	for _, w := range checker.FreeWaits(h) {
		if w.To-w.From <= longest.To-longest.From {
			continue
		}
		if faults == nil {
			faults = incidents(h)
		}
		if !slices.ContainsFunc(faults, func(i incident) bool { return i.overlaps(w.From, w.To) }) {
			longest = w
		}
	}
	return longest
}

// Excused returns the anomalies whose findings are no bugs.
func Excused(list []Finding) (all []checker.Anomaly) {
	for _, f := range list {
		if f.Outcome != Bug {
			all = append(all, f.Anomaly)
		}
	}
	return all
}

// Bugs returns the findings that are bugs.
func Bugs(list []Finding) []Finding {
	return slices.DeleteFunc(slices.Clone(list), func(f Finding) bool { return f.Outcome != Bug })
}
