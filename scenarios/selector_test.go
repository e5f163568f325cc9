package scenarios_test

import (
	"fmt"
	"reflect"
	"testing"

	"github.com/lockfault/lockfault/checker"
	"github.com/lockfault/lockfault/scenarios"
)

func TestSelectorMatches(t *testing.T) {
	tags := []string{"single", "plain-del"}
	for selector, want := range map[scenarios.Selector]bool{
		"set-nx-px-del":  true,
		"set-nx-px":      false,
		"set-nx-*":       true,
		"*-del":          true,
		"*":              true,
		"*-lua":          false,
		"@single":        true,
		"@plain-del":     true,
		"@plain":         false,
		"@set-nx-px-del": false,
		"single":         false,
		"@":              false,
		"":               false,
		"[":              false,
	} {
		if got := selector.Matches("set-nx-px-del", tags); got != want {
			t.Errorf("%q: got %v, want %v", selector, got, want)
		}
	}
}

func TestExpected(t *testing.T) {
	script := parse(t, `
clients A
A acquire
expect @single: stale-write overlap
expect set-nx-*: lost-lock
expect redlock: none
expect @fenced: ghost
`)
	for _, c := range []struct {
		name string
		tags []string
		want []checker.Anomaly
	}{
		{"setnx-expire", []string{"single"}, []checker.Anomaly{checker.Overlap, checker.StaleWrite}},
		{"set-nx-px-del", []string{"single"}, []checker.Anomaly{checker.LostLock}},
		{"redlock", []string{"single"}, nil},
		{"fenced", []string{"single", "fenced"}, []checker.Anomaly{checker.Ghost}},
		{"somebody-else", nil, nil},
	} {
		if got := script.Expected(c.name, c.tags); !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: got %q, want %q", c.name, got, c.want)
		}
	}
}

func TestAppliesTo(t *testing.T) {
	for _, c := range []struct {
		settings, name string
		tags           []string
		nodes          int
		why            string // empty: it applies
	}{
		{"", "mine", nil, 0, ""},
		{"", "mine", nil, 5, ""},
		{"nodes 1", "mine", nil, 0, ""},
		{"nodes 5", "mine", nil, 5, ""},
		{"nodes 5", "mine", nil, 0, "x needs 5 nodes, mine runs on 1"},
		{"nodes 5", "mine", nil, 3, "x needs 5 nodes, mine runs on 3"},
		{"for @quorum", "mine", []string{"quorum"}, 5, ""},
		{"for redlock mine", "mine", nil, 1, ""},
		{"for @quorum red*", "mine", []string{"single"}, 1, "x is for @quorum red*, not for mine"},
	} {
		script := parse(t, c.settings+"\nclients A\nA acquire\nexpect none\n")
		ok, why := script.AppliesTo(c.name, c.tags, c.nodes)
		if ok != (c.why == "") || why != c.why {
			t.Errorf("%q, %s on %d: got %v, %q; want %q", c.settings, c.name, c.nodes, ok, why, c.why)
		}
	}
}

func ExampleParse() {
	_, err := scenarios.Parse("gc-pause.txt", []byte("clients A\n\nA aquire\n"))
	fmt.Println(err)
	// Output: gc-pause.txt:3:3: "aquire" stands where what the client does should (did you mean "acquire"?)
}

func ExampleScript_Expected() {
	script, err := scenarios.Lookup("gc-pause-holding")
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(script.Expected("set-nx-px-lua", []string{"single"}))
	fmt.Println(script.Expected("fenced", []string{"single", "fenced"}))
	// Output:
	// [overlap stale-write]
	// [overlap]
}
