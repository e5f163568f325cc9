package history_test

import (
	"os"
	"strings"
	"testing"

	"github.com/lockfault/lockfault/checker/history"
	"github.com/lockfault/lockfault/checker/linear"
)

// The examples in the documentation are what it says they are.
func TestDocs(t *testing.T) {
	page, err := os.ReadFile("../../docs/history.md")
	if err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		block  string
		format history.Format
		spec   linear.Spec
		want   linear.Verdict
	}{
		{"jsonl", history.JSONLines, linear.Mutex(), linear.Invalid},
		{"jsonl", history.JSONLines, linear.Lease(linear.Believed), linear.Valid},
		{"clojure", history.EDN, linear.Mutex(), linear.Valid},
		{"csv", history.CSV, linear.Mutex(), linear.Invalid},
	}
	for _, test := range tests {
		_, rest, _ := strings.Cut(string(page), "```"+test.block+"\n")
		text, _, found := strings.Cut(rest, "```")
		if !found {
			t.Errorf("there is no example of %s", test.block)
			continue
		}
		r := history.New(strings.NewReader(text), history.Options{Name: test.block})
		var events []linear.Event
		for e, err := range r.Events() {
			if err != nil {
				t.Error(err)
				break
			}
			events = append(events, e)
		}
		if r.Format() != test.format {
			t.Errorf("%s was taken for %s", test.format, r.Format())
		}
		if got := linear.Check(test.spec, events, linear.Options{}); got.Verdict != test.want {
			t.Errorf("%s: %s %s, want %s", test.block, got.Verdict, got.Reason, test.want)
		}
	}
}
