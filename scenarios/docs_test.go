package scenarios_test

import (
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	"gotest.tools/v3/golden"

	"github.com/lockfault/lockfault/scenarios"
)

// What docs/script.md shows must parse, and be in canonical form: whole scripts
// in blocks marked "script", parts of one in blocks "settings" and "steps".
func TestDocumentedExamples(t *testing.T) {
	text, err := os.ReadFile("../docs/script.md")
	if err != nil {
		t.Fatal(err)
	}
	blocks := regexp.MustCompile("(?s)```([a-z]+)\n(.*?)```").FindAllStringSubmatch(string(text), -1)
	if len(blocks) < 8 {
		t.Fatalf("found %d examples only", len(blocks))
	}
	for _, block := range blocks {
		kind, src := block[1], block[2]
		switch kind {
		case "settings":
			src += "\nA acquire\n\nexpect none\n"
		case "steps":
			src = "clients A B C\nnodes 5\nreplicas 1\n\n" + src + "\nexpect none\n"
		case "script":
		default:
			t.Errorf("a block is marked %q", kind)
		}
		if got := string(parse(t, src).Format()); got != src {
			t.Errorf("%s\nis not canonical, this is:\n%s", src, got)
		}
	}
}

// Nor are whole scripts elsewhere wrong, and those are played that are shown with what came of them.
func TestDocumentedScriptsOfServices(t *testing.T) {
	text, err := os.ReadFile("../docs/services.md")
	if err != nil {
		t.Fatal(err)
	}
	blocks := regexp.MustCompile("(?s)```script\n(.*?)```").FindAllStringSubmatch(string(text), -1)
	if len(blocks) == 0 {
		t.Fatal("found none")
	}
	var played []byte
	for _, service := range []string{"postgres", "zookeeper", "etcd"} {
		tests, err := os.ReadFile("../internal/cli/testdata/services/" + service + ".txtar")
		if err != nil {
			t.Fatal(err)
		}
		played = append(played, tests...)
	}
	for _, block := range blocks {
		if got := string(parse(t, block[1]).Format()); got != block[1] {
			t.Errorf("%s\nis not canonical, this is:\n%s", block[1], got)
		}
		if !strings.Contains(string(played), block[1]) {
			t.Errorf("no test plays\n%s", block[1])
		}
	}
}

func TestDocumentedDefaults(t *testing.T) {
	text, err := os.ReadFile("../docs/script.md")
	if err != nil {
		t.Fatal(err)
	}
	var src strings.Builder
	rows := regexp.MustCompile("(?m)^\\| `([a-z-]+) [^`]*` \\| `([^`]+)` \\|").FindAllStringSubmatch(string(text), -1)
	for _, row := range rows {
		src.WriteString(row[1] + " " + row[2] + "\n")
	}
	if len(rows) < 9 {
		t.Fatalf("found %d defaults only", len(rows))
	}
	want := scenarios.Defaults()
	want.Clients = []string{"A"}
	got := parse(t, src.String()+"clients A\nA acquire\nexpect none\n").Settings
	if got.TTL != want.TTL || got.Nodes != want.Nodes || got.Replicas != want.Replicas || got.Grace != want.Grace ||
		got.Bound != want.Bound || got.Patience != want.Patience || got.Retries != want.Retries ||
		got.ReadTimeout != want.ReadTimeout || got.IgnoreContext != want.IgnoreContext {
		t.Errorf("the document's defaults are %+v, the parser's %+v", got, want)
	}
}

// TestPage checks that docs/scenarios.md lists the scenarios of the library.
func TestPage(t *testing.T) {
	const path = "../docs/scenarios.md"
	list, err := scenarios.Library()
	if err != nil {
		t.Fatal(err)
	}
	page := "# The scenarios of the library\n\n" +
		"Each name leads to the script, whose comment says what happens and where it was reported. `lockfault show NAME` prints it, [script.md](script.md) describes the language, and\n" +
		"[leases.md](leases.md) says what a lock of which class may show. A script without a condition is for every lock; one with `@` and a tag for locks that [have it](adding-a-strategy.md#tags).\n\n" +
		"| scenario | what happens | for |\n|---|---|---|\n"
	for _, s := range list {
		var who []string
		for _, f := range s.For {
			who = append(who, "`"+string(f)+"`")
		}
		page += fmt.Sprintf("| [%s](../scenarios/library/%[1]s.txt) | %s | %s |\n", s.Name, s.Summary(), strings.Join(who, ", "))
	}
	if got, _ := os.ReadFile(path); string(got) == page {
		return
	} else if !golden.FlagUpdate() {
		t.Fatalf("%s is not the list of the library: go test ./scenarios -run TestPage -update writes it", path)
	}
	if err := os.WriteFile(path, []byte(page), 0o644); err != nil {
		t.Fatal(err)
	}
}
