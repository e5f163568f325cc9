package faults_test

import (
	"flag"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/lockfault/lockfault/faults"
	"github.com/lockfault/lockfault/scenarios"
)

// TestVocabulary checks that each definition has a unique, well-formed name, an example and a summary.
// Tests of package scenarios check that every example is a valid line of a script.
func TestVocabulary(t *testing.T) {
	name := regexp.MustCompile(`^[a-z]+(-[a-z]+)*$`)
	seen := map[string]bool{}
	for _, entry := range faults.Definitions() {
		if !name.MatchString(entry.Name) {
			t.Errorf("%q is not a name of lower-case words joined by dashes", entry.Name)
		}
		if seen[entry.Name] {
			t.Errorf("%s is listed twice", entry.Name)
		}
		seen[entry.Name] = true
		if entry.Example == "" || entry.Summary == "" {
			t.Errorf("%s has no example or no summary", entry.Name)
		}
	}
}

var update = flag.Bool("update", false, "write the table of faults into docs/script.md")

// TestDocumentedFaults checks that docs/script.md has the table of package faults, and that each example
// is parsed and printed unchanged.
func TestDocumentedFaults(t *testing.T) {
	const path, begin, end = "../docs/script.md", "<!-- faults: go test ./faults -update -->\n", "<!-- end of faults -->"
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	head, rest, _ := strings.Cut(string(text), begin)
	got, tail, found := strings.Cut(rest, end)
	if !found {
		t.Fatalf("%s has no lines %q and %q", path, begin, end)
	}
	want := "\n| name | example | what it does |\n|---|---|---|\n"
	for _, d := range faults.Definitions() {
		want += "| " + d.Name + " | `" + d.Example + "` | " + d.Summary + " |\n"
		f, err := scenarios.ParseFault(d.Example)
		if err != nil || f.String() != d.Example || f.Definition().Name != d.Name {
			t.Errorf("the example %q is parsed as %v: %v", d.Example, f, err)
		}
	}
	want += "\n"
	switch {
	case got == want:
	case *update:
		if err := os.WriteFile(path, []byte(head+begin+want+end+tail), 0o644); err != nil {
			t.Fatal(err)
		}
	default:
		t.Errorf("%s differs from the table of package faults: go test ./faults -update writes it", path)
	}
}
