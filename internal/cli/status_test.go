package cli

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/lockfault/lockfault/internal/cli/kit"
	"github.com/lockfault/lockfault/strategies"
)

// The README's table has every command, and each exit status that a script shows of it.
func TestTableOfStatuses(t *testing.T) {
	readme, err := os.ReadFile(filepath.Join("..", "..", "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, text, _ := strings.Cut(string(readme), "\n| | 0 | 1 | 2 | 3 | 130 |\n")
	text, _, _ = strings.Cut(text, "\n\n")
	means := map[string][]string{} // of a command, by the column
	var names []string
	for row := range strings.Lines(text) {
		cells := strings.Split(strings.TrimSpace(row), "|")
		for _, name := range regexp.MustCompile("`([a-z-]+)`").FindAllStringSubmatch(cells[1], -1) {
			names = append(names, name[1])
			means[name[1]] = cells[2:]
		}
	}
	commands := []string{"help"}
	for _, c := range newRoot(newApp(strategies.Builtin(), kit.Product, nil)).Commands() {
		commands = append(commands, c.Name())
	}
	slices.Sort(names)
	slices.Sort(commands)
	if !slices.Equal(names, commands) {
		t.Errorf("the table has %q, and there are %q", names, commands)
	}
	scripts, err := filepath.Glob("testdata/*/*.txtar")
	if err != nil || len(scripts) == 0 {
		t.Fatal(scripts, err)
	}
	shown := regexp.MustCompile(`(?m)^exits ([0-3]) .*?lockfault ([a-z-]+).*`)
	for _, script := range scripts {
		text, err := os.ReadFile(script)
		if err != nil {
			t.Fatal(err)
		}
		for _, line := range shown.FindAllStringSubmatch(string(text), -1) {
			of, ok := means[line[2]]
			if ok && strings.TrimSpace(of[line[1][0]-'0']) == "" && !strings.Contains(line[0], "/dev/full") {
				t.Errorf("%s: the table says nothing of it:\n%s", script, line[0])
			}
		}
	}
}
