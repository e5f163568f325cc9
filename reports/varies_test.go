package reports

import (
	"bufio"
	"bytes"
	"strings"
	"testing"

	"github.com/lockfault/lockfault/checker"
)

// TestVarying checks that reports mention varying histories exactly for the strategies that have
// them.
func TestVarying(t *testing.T) {
	const says = "b: the same seed gives the same verdict, but not always the same history"
	for _, varies := range []string{"", "its goroutines race"} {
		m := &Matrix{}
		for _, c := range []Cell{{Strategy: "a", Scenario: "s", Verdict: Held}, {Strategy: "b", Scenario: "s", Verdict: Held, Varies: varies}} {
			if err := m.Add(c); err != nil {
				t.Fatal(err)
			}
		}
		var table, markdown, story bytes.Buffer
		if err := m.Table(&table); err != nil {
			t.Fatal(err)
		}
		b := bufio.NewWriter(&markdown)
		m.markdown(b)
		b.Flush()
		if err := Story(&story, Cell{Strategy: "b", Scenario: "s", Verdict: Held, Varies: varies}, checker.History{}, View{}); err != nil {
			t.Fatal(err)
		}
		for text, want := range map[string]string{
			table.String():    "\n" + says + "\n",
			markdown.String(): "\n" + says + ".\n",
			story.String():    "since its goroutines race\n",
		} {
			if got := strings.Contains(text, want); got != (varies != "") {
				t.Errorf("with %q, %q is there: %v\n%s", varies, want, got, text)
			}
		}
	}
}
