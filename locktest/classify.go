package locktest

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/lockfault/lockfault/checker"
	"github.com/lockfault/lockfault/reports"
	"github.com/lockfault/lockfault/scenarios"
	"github.com/lockfault/lockfault/strategies"
)

// Scripts that test whether a lock works and determine its kind. They use the language of all
// scripts.
const (
	worksScript = `
clients A
A acquire
A extend
A release
A acquire
A release
expect none
`
	renewsScript = `
clients A B
A acquire
wait 3ttl
B try
A crash
wait 3ttl
B try
expect none
`
	deadlineScript = `
clients A B
A acquire
begin B acquire within 0.1ttl
await B done
expect none
`
	quorumScript = `
clients A
nodes 3
n1 crash
A acquire
expect none
`
)

// kind adds the tags that a few short runs show to the test's strategy. The error describes the
// failure of a lock without any fault.
func (test *test) kind(t *testing.T) error {
	s := &test.cell.Strategy
	s.Tags = slices.Clone(s.Tags)
	tag := func(name string, is bool) {
		if is && !slices.Contains(s.Tags, name) {
			s.Tags = append(s.Tags, name)
		}
	}
	h, err := test.ask(t, "works", worksScript)
	if err != nil {
		return err
	}
	test.lease = leaseOf(h)
	for _, e := range returns(h) {
		switch {
		case e.Op == checker.Extend: // the lock may not support it
			tag(strategies.TagExtending, e.Result != checker.Fail)
		case e.Result != checker.OK:
			return fmt.Errorf("with one client and nothing done to it, its %s returned %q", e.Op, e.Error)
		case e.Token != 0:
			tag(strategies.TagFenced, true)
		}
	}
	if h, err = test.ask(t, "renews", renewsScript); err != nil {
		return err
	}
	// A lock renews if the key exists while its holder lives, and not afterwards.
	if list := returns(h); len(list) >= 2 {
		tag(strategies.TagRenewing, list[len(list)-2].Result == checker.Fail && list[len(list)-1].Result == checker.OK)
	}
	if h, err = test.ask(t, "deadline", deadlineScript); err != nil {
		return err
	}
	test.deaf = overstay(h)
	if s.Nodes >= 3 {
		if h, err = test.ask(t, "quorum", quorumScript); err != nil {
			return err
		}
		list := returns(h)
		tag(strategies.TagQuorum, len(list) == 1 && list[0].Result == checker.OK)
	}
	return nil
}

// ask runs a small script and returns its history.
func (test *test) ask(t *testing.T, name, text string) (h checker.History, err error) {
	script, err := scenarios.Parse(name+".txt", []byte(text))
	if err != nil {
		return h, err
	}
	cell, h, err := test.perform(t, script)
	if err == nil && cell.Verdict == reports.Error {
		err = fmt.Errorf("%s", cell.Reason)
	}
	if err != nil {
		return h, fmt.Errorf("%s", explain(err.Error()))
	}
	return h, nil
}

// returns returns the return events of a history.
func returns(h checker.History) (list []checker.Event) {
	for _, e := range h.Events {
		if e.Kind == checker.Return {
			list = append(list, e)
		}
	}
	return list
}

// overstay returns the delay of B's acquire after the end of its context, which ends after a tenth
// of the lease. A delay of up to a third of the lease, which an attempt may take, counts as 0.
func overstay(h checker.History) time.Duration {
	var called time.Duration
	for _, e := range h.Events {
		switch {
		case e.Client != "B" || e.Op != checker.Acquire:
		case e.Kind == checker.Invoke:
			called = e.Time
		case e.Kind == checker.Return:
			if late := e.Time - called - h.Meta.TTL/10; late > h.Meta.TTL/3 {
				return late.Round(time.Millisecond)
			}
		}
	}
	return 0
}

// leaseOf returns the initial lease of the lock's key if it clearly differs from the lease that the
// lock was given, and 0 otherwise.
func leaseOf(h checker.History) time.Duration {
	for _, e := range h.Events {
		if e.Kind == checker.State && e.Owner != "" && e.Expires > 0 {
			lease := e.Expires - e.Time
			if off := (lease - h.Meta.TTL).Abs(); off > h.Meta.TTL/10 {
				return lease.Round(time.Millisecond)
			}
			return 0
		}
	}
	return 0
}
