package selection

import (
	"context"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/lockfault/lockfault/internal/cli/kit"
	"github.com/lockfault/lockfault/scenarios"
	"github.com/lockfault/lockfault/strategies"
)

// ChooseStrategies returns the strategies that the words name by name, pattern or @tag, in the
// order of the registry; no words select all. For a lock of a service that registry lacks, the error
// names the service.
func ChooseStrategies(a *kit.App, registry strategies.Registry, words []string) ([]strategies.Strategy, error) {
	words = withClassic(words, classicStrategies)
	for _, word := range words {
		if _, err := registry.Select(word); err == nil {
			continue
		}
		if others, err := a.Everything.Select(word); err == nil {
			s := others[0]
			var of []string
			for _, here := range registry.All() {
				if !slices.Contains(of, here.RunsOn()) {
					of = append(of, here.RunsOn())
				}
			}
			return nil, kit.Usage("%s runs on %s, and the locks that can be meant here on %s", s.Name, s.RunsOn(), strings.Join(of, ", "))
		}
		if a.Full.Has(word) {
			return nil, kit.Lacks("--strategy "+word, "withservices")
		}
		known := slices.Concat(registry.Names(), a.Everything.Names())
		for _, s := range registry.All() {
			for _, tag := range s.Tags {
				known = append(known, "@"+tag)
			}
		}
		return nil, kit.Unknown("strategy", word, known, "the commands \"list strategies\" and \"list services\" print them")
	}
	return registry.Select(words...)
}

// Chosen is a scenario to play.
type Chosen struct {
	*scenarios.Script
	// File and source are the path and text of a user's script. They are empty for scenarios of the
	// library.
	File   string
	Source []byte
}

// Generated parses a script that this program generated.
func Generated(file, text string) (Chosen, error) {
	script, err := scenarios.Parse(file, []byte(text))
	if err != nil {
		return Chosen{}, fmt.Errorf("the script %s that was written here is wrong: %w", file, err)
	}
	return Chosen{Script: script, File: file, Source: []byte(text)}, nil
}

// ChooseScenarios returns the scenarios that the words name. A word is a name, a pattern of names,
// or the path of a file, of a directory or a pattern of files. Scenarios of the library come first,
// in its order, then files, each once. No words select the whole library. Scenarios about other
// services match patterns only if others is true.
func ChooseScenarios(ctx context.Context, words []string, others bool) ([]Chosen, error) {
	if len(words) == 0 {
		words = []string{"*"}
	}
	words = withClassic(words, classicScenarios)
	wanted, read := map[string]bool{}, map[string]bool{}
	var files []Chosen
	for _, word := range words {
		found := false
		for i, name := range scenarios.All() {
			if matched, err := path.Match(word, name); matched && err == nil && (i < len(scenarios.Names()) || others || word == name) {
				found, wanted[name] = true, true
			}
		}
		if IsFile(word) || !found && isDir(word) {
			list, err := scriptFiles(word)
			if err != nil {
				return nil, err
			}
			for _, file := range list {
				if read[filepath.Clean(file)] {
					continue
				}
				c, err := readScenario(ctx, file)
				if err != nil {
					return nil, err
				}
				read[filepath.Clean(file)], files = true, append(files, c)
			}
			continue
		}
		if !found {
			return nil, kit.Unknown("scenario", word, AllScenarios(), "the command \"list scenarios\" prints them; the path of a file or directory has a / or ends in .txt")
		}
	}
	var list []Chosen
	for _, name := range scenarios.All() {
		if !wanted[name] {
			continue
		}
		script, err := scenarios.Lookup(name)
		if err != nil {
			return nil, err
		}
		list = append(list, Chosen{Script: script})
	}
	for _, c := range files {
		for _, other := range list {
			if other.Name != c.Name {
				continue
			}
			if other.File == "" {
				return nil, kit.Usage("%s has the name of the scenario %q, which is asked for too: rename the file", c.File, c.Name)
			}
			return nil, kit.Usage("%s and %s are both called %q: rename one of them", other.File, c.File, c.Name)
		}
		list = append(list, c)
	}
	return list, nil
}

// IsFile reports whether a word has the form of a path rather than a scenario's name.
func IsFile(word string) bool {
	return strings.ContainsAny(word, `/\`) || strings.HasSuffix(word, ScriptSuffix) || word == "." || word == ".."
}

// ScriptSuffix is the extension of script files.
const ScriptSuffix = ".txt"

// scriptFiles returns the files that a word names, sorted by name: a file, the scripts in a
// directory, or the matches of a pattern. A file that the user did not name literally must be a
// regular file, and a symbolic link must not lead out of its directory.
func scriptFiles(word string) ([]string, error) {
	info, err := os.Stat(word)
	switch {
	case err == nil && info.IsDir():
		list, err := scriptsIn(word)
		if err != nil {
			return nil, err
		}
		return list, checkFound(list)
	case err == nil || !strings.ContainsAny(word, "*?["):
		return []string{word}, nil // the reader reports a missing file
	}
	matches, err := filepath.Glob(word)
	if err != nil {
		return nil, kit.Usage("%q is no pattern of files: close the bracket", word)
	}
	list := slices.DeleteFunc(matches, isDir)
	if len(list) == 0 {
		return nil, kit.Usage("no file matches %q", word)
	}
	return list, checkFound(list)
}

// checkFound returns a usage error for files that are not regular, or links out of their directory.
// The directory may have been filled by another person.
func checkFound(list []string) error {
	for _, file := range list {
		in, err := os.OpenRoot(filepath.Dir(file))
		if err != nil {
			return kit.Usage("can't read the directory: %v", kit.PathErrorText(err))
		}
		info, err := in.Stat(filepath.Base(file))
		in.Close()
		switch {
		case err != nil:
			return kit.Usage("the script %s is a symbolic link that leads nowhere, or out of its directory: name the file itself", file)
		case !info.Mode().IsRegular():
			return kit.Usage("the script %s is not a regular file", file)
		}
	}
	return nil
}

// scriptsIn returns the scripts in a directory, or a usage error if it has none.
func scriptsIn(dir string) (list []string, err error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, kit.Usage("can't read the directory: %v", kit.PathErrorText(err))
	}
	for _, entry := range entries {
		if file := filepath.Join(dir, entry.Name()); strings.HasSuffix(file, ScriptSuffix) && !isDir(file) {
			list = append(list, file)
		}
	}
	if len(list) == 0 {
		return nil, kit.Usage("there is no script in the directory %s: the names of scripts end in %s", dir, ScriptSuffix)
	}
	return list, nil
}

func isDir(name string) bool {
	info, err := os.Stat(name)
	return err == nil && info.IsDir()
}

// readScenario reads and parses a user's script.
func readScenario(ctx context.Context, file string) (Chosen, error) {
	source, err := kit.ReadText(ctx, nil, "script", file)
	if err != nil {
		// A library name with ".txt" most likely means the library scenario.
		if name := strings.TrimSuffix(file, ".txt"); ctx.Err() == nil && slices.Contains(scenarios.All(), name) {
			return Chosen{}, kit.Usage("there is no file %s, did you mean the scenario %q?", file, name)
		}
		return Chosen{}, err
	}
	script, err := scenarios.Parse(file, source)
	if err != nil {
		return Chosen{}, err
	}
	return Chosen{Script: script, File: file, Source: source}, nil
}

// CheckNames returns an error for scripts that name unknown strategies or tags. The names of the
// registry and all names that come with lockfault are known, because scripts are shared between
// programs with different strategies.
func CheckNames(registry strategies.Registry, scripts []Chosen) error {
	var names, tags []string
	for _, s := range append(registry.All(), strategies.Builtin().All()...) {
		names, tags = append(names, s.Name), append(tags, s.Tags...)
	}
	library, err := scenarios.Library()
	if err != nil {
		return err
	}
	for _, name := range scenarios.OfServices() {
		script, err := scenarios.Lookup(name)
		if err != nil {
			return err
		}
		library = append(library, script)
	}
	for _, script := range library {
		for _, selector := range script.Selects() {
			if tag, ok := strings.CutPrefix(string(selector), "@"); ok {
				tags = append(tags, tag)
			} else if !selector.Pattern() {
				names = append(names, string(selector))
			}
		}
	}
	for _, script := range scripts {
		if err := script.CheckNames(names, tags); err != nil {
			return err
		}
	}
	return nil
}

// ChooseScenario returns the single scenario that a word names: of the library, of the map
// scenarios, or a file.
func ChooseScenario(ctx context.Context, word string) (Chosen, error) {
	if file, src := scenarios.MapSource(word); src != nil {
		return Generated(file, string(src))
	}
	list, err := ChooseScenarios(ctx, []string{word}, true)
	if err != nil {
		return Chosen{}, err
	}
	if len(list) > 1 {
		return Chosen{}, kit.Usage("%q names %d scenarios: name one", word, len(list))
	}
	return list[0], nil
}

// AllScenarios returns the names of the library's scenarios and of the map scenarios.
func AllScenarios() []string { return append(scenarios.All(), scenarios.MapNames()...) }
