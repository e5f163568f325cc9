package reports_test

import (
	"time"

	"github.com/lockfault/lockfault/checker"
	"github.com/lockfault/lockfault/internal/leases"
	"github.com/lockfault/lockfault/reports"
)

// anomalies returns its arguments as a list.
func anomalies(list ...checker.Anomaly) []checker.Anomaly { return list }

// cell returns a settled cell with one witness for each anomaly found.
func cell(strategy, scenario string, found, expected []checker.Anomaly) reports.Cell {
	c := reports.Cell{
		World: "sim", Strategy: strategy, Scenario: scenario, Verdict: reports.Held,
		Anomalies: found, Expected: expected, Linearizable: true,
		Virtual: 33 * time.Second, Elapsed: 2 * time.Millisecond,
		RoundTrips: map[checker.Op]int{checker.Acquire: 1, checker.Release: 2},
		History:    "histories/sim/" + strategy + "/" + scenario + ".jsonl",
	}
	for i, a := range found {
		c.Verdict = reports.Violated
		c.Linearizable = c.Linearizable && a != checker.Overlap
		c.Witnesses = append(c.Witnesses, checker.Witness{Anomaly: a, Events: []int{3 * i, 3*i + 2}, Message: "This is why."})
	}
	c.Settle()
	return c
}

// sample returns cells of every kind, ordered by scenario, as in a run.
func sample() []reports.Cell {
	broken := cell("set-nx|px", "flush", nil, anomalies(checker.LostLock))
	broken.Verdict = reports.Error
	broken.Reason = "panic: out of cheese: the worker process ended (exit status 2)\n\ngoroutine 7 [running]:\nmain.explode()"
	broken.History = ""
	broken.Settle()

	undecided := cell("redlock", "flush", nil, nil)
	undecided.Verdict, undecided.Reason = reports.Unknown, "the script ended too early"
	undecided.Settle()

	absent := reports.Cell{
		World: "sim", Strategy: "set-nx|px", Scenario: "node-down", Verdict: reports.NotApplicable,
		Reason: "node-down needs 5 nodes, set-nx|px runs on 1",
	}
	absent.Settle()

	timed := cell("redlock", "node-down", nil, nil)
	timed.Measures = map[string]time.Duration{"recovery": 30_002 * time.Millisecond}
	timed.RoundTrips = map[checker.Op]int{checker.Acquire: 5}

	idle := cell("redlock", "gc-pause", anomalies(checker.Overlap, checker.Ghost), anomalies(checker.Overlap, checker.StaleWrite))
	idle.MetNothing = []reports.MetNothing{
		{Line: 7, Text: "hold A before GETSET"},
		{Line: 5, Text: "drop A messages or none", OrNone: true},
	}
	idle.Findings = []leases.Finding{
		{Anomaly: checker.Overlap, Outcome: leases.Limitation, Reason: "A paused for longer than the TTL", Witness: idle.Witnesses[0], Occurrences: map[leases.Outcome]int{leases.Limitation: 2}},
		{Anomaly: checker.Ghost, Outcome: leases.Bug, Reason: "no fault excuses it", Witness: idle.Witnesses[1], Occurrences: map[leases.Outcome]int{leases.Bug: 1}},
	}
	timed.Leak = "in main.(*lock).renew at lock/renew.go:12, started by main.(*lock).Acquire at lock/lock.go:40"
	still := cell("set-nx|px", "contention", nil, nil)
	still.MetNothing = []reports.MetNothing{{Line: 4, Text: "drop before HSET_X"}}
	allowed := cell("redlock", "contention", nil, anomalies(checker.Unavailable))
	allowed.MetNothing = []reports.MetNothing{{Line: 3, Text: "drop messages or none", OrNone: true}}
	undecided.MetNothing = idle.MetNothing
	undecided.Settle()

	return []reports.Cell{
		cell("set-nx|px", "gc-pause", anomalies(checker.Overlap, checker.StaleWrite), anomalies(checker.StaleWrite, checker.Overlap)),
		idle,
		still,
		allowed,
		absent,
		timed,
		broken,
		undecided,
	}
}
