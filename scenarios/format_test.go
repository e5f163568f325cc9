package scenarios_test

import (
	"bytes"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"gotest.tools/v3/golden"

	"github.com/lockfault/lockfault/checker"
	"github.com/lockfault/lockfault/faults"
	"github.com/lockfault/lockfault/scenarios"
)

// Each testdata/format/NAME.txt must come out as NAME.golden.
func TestFormat(t *testing.T) {
	files, err := filepath.Glob("testdata/format/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("no test data: %v", err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			src, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			got := parse(t, string(src)).Format()
			golden.Assert(t, string(got), filepath.Join("format", strings.TrimSuffix(filepath.Base(file), ".txt")+".golden"))
			roundTrip(t, src)
		})
	}
}

// A script that was made, not read: from a search or a generator.
func TestFormatWithoutText(t *testing.T) {
	script := &scenarios.Script{Doc: []string{"Found by search.", "", "two\nlines "}, Settings: scenarios.Defaults()}
	script.Clients = []string{"A", "B", "C"}
	script.Threads = map[string]string{"C": "9", "B": "7", "A": "9"}
	script.Nodes = 2
	for _, action := range []scenarios.Action{
		scenarios.Call{Clients: []string{"A"}, Op: "acquire"},
		scenarios.Inject{Fault: faults.CrashNode{Node: "n1"}},
		scenarios.Inject{Fault: faults.CrashNode{Node: "n2"}},
	} {
		script.Steps = append(script.Steps, scenarios.Step{Do: action})
	}
	script.Expects = []scenarios.Expect{{Anomalies: []checker.Anomaly{checker.Overlap}, Reason: " two\nlines "}}
	const want = `# Found by search.
#
# two
# lines

clients A B C
nodes 2
thread 9 A C
thread 7 B

A acquire
n1 crash
n2 crash

expect overlap  # two lines
`
	if got := string(script.Format()); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	roundTrip(t, []byte(want))
}

// A step that is taken out of a script takes its comments along; a setting that
// is added finds its place behind the others.
func TestFormatAfterAChange(t *testing.T) {
	script := parse(t, `# doc
ttl 30s # the default
clients A

# first
A acquire # one
# second
A release # two
expect none
# last
`)
	script.Steps = script.Steps[1:]
	script.Nodes = 5
	const want = `# doc

ttl 30s  # the default
clients A
nodes 5

# second
A release  # two

expect none
# last
`
	if got := string(script.Format()); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// roundTrip checks that formatting a script changes nothing but its text, and
// that formatting it again changes nothing at all.
func roundTrip(t interface {
	Helper()
	Fatalf(string, ...any)
}, src []byte) {
	t.Helper()
	first, err := scenarios.Parse("x.txt", src)
	if err != nil {
		t.Fatalf("%v in\n%s", err, src)
	}
	text := first.Format()
	second, err := scenarios.Parse("x.txt", text)
	if err != nil {
		t.Fatalf("formatted, it no longer parses: %v\n%s", err, text)
	}
	if again := second.Format(); !bytes.Equal(again, text) {
		t.Fatalf("formatting is not stable:\n%s\nthen\n%s", text, again)
	}
	if !reflect.DeepEqual(meaning(first), meaning(second)) {
		t.Fatalf("formatting changed the script\n%s\nto\n%s", src, text)
	}
}

// meaning is a script without line numbers and layout.
func meaning(s *scenarios.Script) any {
	steps := append([]scenarios.Step(nil), s.Steps...)
	for i := range steps {
		steps[i].Line = 0
	}
	expects := append([]scenarios.Expect(nil), s.Expects...)
	for i := range expects {
		expects[i].Line = 0
	}
	return []any{s.Name, s.Doc, s.Settings, steps, expects}
}
