package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"

	"github.com/lockfault/lockfault/scenarios"
	"github.com/lockfault/lockfault/strategies"
)

// chooseStrategies returns the strategies that the words name, by name,
// pattern or @tag, in the registry's order; no words mean all.
func chooseStrategies(registry strategies.Registry, words []string) ([]strategies.Strategy, error) {
	for _, word := range words {
		if slices.ContainsFunc(registry.All(), func(s strategies.Strategy) bool { return s.Matches(word) }) {
			continue
		}
		known := registry.Names()
		for _, s := range registry.All() {
			for _, tag := range s.Tags {
				known = append(known, "@"+tag)
			}
		}
		return nil, unknown("strategy", word, known, "\"lockfault list strategies\" prints them")
	}
	return registry.Select(words...)
}

// A chosen is a scenario to play.
type chosen struct {
	*scenarios.Script
	// file and source are those of a user's own script; empty for one of
	// the library.
	file   string
	source []byte
}

// chooseScenarios returns the scenarios that the words name, by name, pattern
// or path of a file: first those of the library in its order, then the files;
// no words mean the whole library.
func chooseScenarios(words []string) ([]chosen, error) {
	if len(words) == 0 {
		words = []string{"*"}
	}
	wanted := map[string]bool{}
	var files []chosen
	for _, word := range words {
		if isFile(word) {
			c, err := readScenario(word)
			if err != nil {
				return nil, err
			}
			files = append(files, c)
			continue
		}
		found := false
		for _, name := range scenarios.Names() {
			if matched, err := path.Match(word, name); matched && err == nil {
				found, wanted[name] = true, true
			}
		}
		if !found {
			return nil, unknown("scenario", word, scenarios.Names(), "\"lockfault list scenarios\" prints them; the path of a file has a / or ends in .txt")
		}
	}
	var list []chosen
	for _, name := range scenarios.Names() {
		if !wanted[name] {
			continue
		}
		script, err := scenarios.Lookup(name)
		if err != nil {
			return nil, err
		}
		list = append(list, chosen{Script: script})
	}
	for _, c := range files {
		for _, other := range list {
			if other.Name != c.Name {
				continue
			}
			if other.file == "" {
				return nil, usage("%s has the name of the scenario %q, which is asked for too: rename the file", c.file, c.Name)
			}
			return nil, usage("%s and %s are both called %q: rename one of them", other.file, c.file, c.Name)
		}
		list = append(list, c)
	}
	return list, nil
}

// isFile reports whether a word names a file rather than a scenario of the
// library.
func isFile(word string) bool {
	return strings.ContainsAny(word, `/\`) || strings.HasSuffix(word, ".txt")
}

// readScenario reads and parses a user's script.
func readScenario(file string) (chosen, error) {
	source, err := os.ReadFile(file)
	if err != nil {
		// Who puts ".txt" to a name of the library means that name.
		if name := strings.TrimSuffix(file, ".txt"); slices.Contains(scenarios.Names(), name) {
			return chosen{}, usage("there is no file %s, did you mean the scenario %q?", file, name)
		}
		return chosen{}, usage("can't read the script: %v", brief(err))
	}
	script, err := scenarios.Parse(file, source)
	if err != nil {
		return chosen{}, err
	}
	return chosen{Script: script, file: file, source: source}, nil
}

// brief drops the name of the system call, which tells a user nothing.
func brief(err error) error {
	var p *fs.PathError
	if errors.As(err, &p) {
		return fmt.Errorf("%s: %w", p.Path, p.Err)
	}
	return err
}
