package conformance

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/lockfault/lockfault/internal/rediscmd"
)

var (
	wireLine = regexp.MustCompile(`^ *\S+  [A-Z] n\d+  (.+)$`)
	calls    = regexp.MustCompile(`redis\.p?call\(["'](\w+)["']`)
)

// kind returns what of a command is alike in all its uses: its name and options,
// or of a script the commands that it can call.
func kind(words []string) string {
	name := strings.ToUpper(words[0])
	switch name {
	case "EVAL", "EVALSHA":
		return "EVAL " + words[1]
	case "SET":
		var options []string
		for _, word := range words[3:] {
			if word = strings.ToUpper(word); slices.Contains(setOptions(), word) {
				options = append(options, word)
			}
		}
		slices.Sort(options)
		return strings.Join(append([]string{name}, options...), " ")
	}
	return name
}

// setOptions returns the options that SET has in the release of Redis that rediscmd was generated
// from.
func setOptions() (words []string) {
	generated, err := parseVersion(rediscmd.Release)
	if err != nil {
		panic(err)
	}
	for _, o := range rediscmd.Lookup("SET").Options {
		if since, err := parseVersion(o.Redis); err == nil && !generated.before(since) {
			words = append(words, o.Word)
		}
	}
	return words
}

// played returns the kinds of all commands in the cases.
func played(t *testing.T) map[string]bool {
	t.Helper()
	kinds := map[string]bool{}
	for _, table := range tables(t) {
		for _, text := range table.scripts {
			var names []string
			for _, call := range calls.FindAllStringSubmatch(text, -1) {
				names = append(names, strings.ToLower(call[1]))
			}
			kinds["EVAL {"+strings.Join(names, " ")+"}"] = true
		}
		for _, c := range table.cases {
			for _, s := range c.steps {
				for _, words := range s.send {
					kinds[strings.ToUpper(words[0])] = true
					if strings.EqualFold(words[0], "SET") && len(words) > 3 {
						kinds[kind(words)] = true
					}
				}
			}
		}
	}
	return kinds
}

// Whatever a strategy sends is played here, so that no new one is forgotten: the
// goldens of their tests say what that is.
func TestCasesCoverTheStrategies(t *testing.T) {
	kinds := played(t)
	var goldens []string
	for _, dir := range []string{"strategies", "strategies/thirdparty"} {
		files, err := filepath.Glob(filepath.Join("..", "..", filepath.FromSlash(dir), "testdata", "*.txt"))
		if err != nil || len(files) == 0 {
			t.Fatalf("%s has no goldens: %v", dir, err)
		}
		goldens = append(goldens, files...)
	}
	missing := map[string]bool{}
	for _, file := range goldens {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		sent := 0
		for line := range strings.Lines(string(text)) {
			found := wireLine.FindStringSubmatch(strings.TrimSuffix(line, "\n"))
			if found == nil {
				continue
			}
			sent++
			rest := found[1]
			words := strings.Fields(rest)
			if script := regexp.MustCompile(`\{[^}]*\}`).FindString(rest); strings.HasPrefix(rest, "EVAL") {
				words = []string{words[0], script}
			}
			if k := kind(words); !kinds[k] && !missing[k] {
				missing[k] = true
				t.Errorf("%s sends %s: add a case that does", filepath.Base(file), k)
			}
		}
		if sent == 0 {
			t.Errorf("%s: found no command in it", file)
		}
	}
}

func TestCasesCoverTheOptionsOfSet(t *testing.T) {
	kinds := played(t)
	for _, option := range setOptions() {
		if !kinds["SET "+option] {
			t.Errorf("no case has SET with %s alone", option)
		}
	}
}
