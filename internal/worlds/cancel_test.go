package worlds_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/lockfault/lockfault/checker"
	"github.com/lockfault/lockfault/internal/harness"
	"github.com/lockfault/lockfault/scenarios"
)

// givingUp has callers give up, and one of them while its client is stopped.
const givingUp = `clients A B
B acquire
begin A acquire within 5ttl
wait 0.1ttl
A cancel
await A done within 0.5ttl
A cancel
begin A rounds 2
wait 0.1ttl
A pause
A cancel
A resume
wait 0.1ttl
B release
await A done within 0.5ttl
expect none
`

// What callers that give up do to clients with processes of their own is what it does to those in
// virtual time.
func TestCancelInAProcess(t *testing.T) {
	needServer(t)
	script, err := scenarios.Parse("test.txt", []byte(givingUp))
	if err != nil {
		t.Fatal(err)
	}
	s, _ := lookup("set-nx-px-lua")
	virtual := harness.Play(t, harness.Cell{Strategy: s, Script: script, Seed: 1})
	outcome, shown := playReal(t, s.Name, script, long)
	if !shown {
		return
	}
	if outcome.Status != harness.Held || virtual.Status != harness.Held {
		t.Errorf("%s %s, and in virtual time %s %s", outcome.Status, outcome.Reason, virtual.Status, virtual.Reason)
	}
	const want = "B acquire, B acquire ok, A acquire, A cancel, A acquire fail, A acquire, A pause, A resume, A cancel, A acquire fail, " +
		"A acquire, B release, B release ok, A acquire ok, A release, A release ok"
	for _, o := range []harness.Outcome{outcome, virtual} {
		if got := told(o.History); got != want {
			t.Errorf("%s: got  %s\nwant %s", o.History.Meta.World, got, want)
		}
		if got := fmt.Sprint(o.MetNothing); got != "[{7 A cancel false}]" {
			t.Errorf("%s: %s met nothing", o.History.Meta.World, got)
		}
	}
}

// told returns what became of clients and their operations, without times.
func told(h checker.History) string {
	var list []string
	for _, e := range h.Events {
		switch e.Kind {
		case checker.Invoke:
			list = append(list, fmt.Sprintf("%s %s", e.Client, e.Op))
		case checker.Return:
			list = append(list, fmt.Sprintf("%s %s %s", e.Client, e.Op, e.Result))
		case checker.Cancel, checker.Pause, checker.Resume:
			list = append(list, fmt.Sprintf("%s %s", e.Client, e.Kind))
		}
	}
	return strings.Join(list, ", ")
}

// A program that doesn't say that it understands is not asked.
func TestWhoCantCancel(t *testing.T) {
	needServer(t)
	script, err := scenarios.Parse("test.txt", []byte(givingUp))
	if err != nil {
		t.Fatal(err)
	}
	outcome, shown := playReal(t, "deaf", script, long)
	if want := "test:5: A's program can't be told that a caller gives up"; shown &&
		(outcome.Status != harness.Error || !strings.Contains(outcome.Reason, want)) {
		t.Errorf("%s: %s, want %s", outcome.Status, outcome.Reason, want)
	}
}
