package locktest

import (
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"

	"github.com/lockfault/lockfault/checker"
	"github.com/lockfault/lockfault/internal/input"
	"github.com/lockfault/lockfault/internal/suggest"
	"github.com/lockfault/lockfault/scenarios"
)

// An Option says what is expected of a lock, or what is played.
type Option struct {
	of        string   // the function that made it
	names     []string // of scenarios, or of files; patterns
	anomalies []string
}

// The functions that make options.
const (
	survives = "Survives"
	accepts  = "Accepts"
	only     = "Only"
	scripts  = "Scripts"
)

// Survives promises that nothing goes wrong under these scenarios, by their names or by
// patterns such as "failover-*". The test fails if something does, or if the lock is
// none that the scenario can be played with.
func Survives(scenarios ...string) Option { return Option{of: survives, names: scenarios} }

// Accepts says what the lock may show under a scenario, by its name or a pattern: these
// anomalies at most, whatever others of its kind show.
func Accepts(scenario string, anomalies ...string) Option {
	return Option{of: accepts, names: []string{scenario}, anomalies: anomalies}
}

// Only has these scenarios of the library played and no others, by their names or by
// patterns. With no name, none of the library is.
func Only(scenarios ...string) Option { return Option{of: only, names: scenarios} }

// Scripts has scenarios of one's own played, too, from the files that these patterns name,
// from the test's directory: docs/script.md is their language. [Survives] and [Accepts]
// know each by its file's name, such as "mine.txt".
func Scripts(patterns ...string) Option { return Option{of: scripts, names: patterns} }

// options are what the options of one test say.
type options struct {
	scripts  []*scenarios.Script // that are played
	files    map[string]string   // of the user's own, by their keys
	promises map[string]promise  // by the scripts' keys
}

// A promise is what a test says of its lock under one scenario.
type promise struct {
	by      string // the function
	pattern bool   // it names more than the one
	may     []checker.Anomaly
}

// read reads the options, in whatever order they are given.
func read(list []Option) (*options, error) {
	library, err := scenarios.Library()
	if err != nil {
		return nil, err
	}
	o := options{files: map[string]string{}, promises: map[string]promise{}}
	all := library
	for _, option := range list {
		switch option.of {
		case scripts:
			own, err := o.readFiles(option.names)
			if err != nil {
				return nil, err
			}
			all = append(all, own...)
		case "":
			return nil, fmt.Errorf("an Option that says nothing: they come from Survives, Accepts, Only and Scripts")
		}
	}
	o.scripts = all
	for _, option := range list {
		if option.of == only {
			o.scripts = o.scripts[:0:0]
		}
	}
	for _, option := range list {
		if option.of == scripts {
			continue
		}
		may, err := anomaliesOf(option.anomalies)
		if err != nil {
			return nil, err
		}
		for _, pattern := range option.names {
			named, err := match(pattern, all)
			if err != nil {
				return nil, err
			}
			for _, script := range named {
				switch {
				case option.of != only:
					err = o.promise(script.Key(), promise{option.of, pattern != script.Key(), may})
				case !slices.Contains(o.scripts, script):
					o.scripts = append(o.scripts, script)
				}
				if err != nil {
					return nil, err
				}
			}
		}
	}
	if len(o.scripts) < len(all) { // with Only: the user's own are played all the same
		for _, script := range all[len(library):] {
			if !slices.Contains(o.scripts, script) {
				o.scripts = append(o.scripts, script)
			}
		}
	}
	if len(o.scripts) == 0 {
		return nil, fmt.Errorf("nothing is played: Only names no scenario, and there are no Scripts")
	}
	for key, p := range o.promises {
		if !p.pattern && !slices.ContainsFunc(o.scripts, func(s *scenarios.Script) bool { return s.Key() == key }) {
			return nil, fmt.Errorf("%s speaks of %s, which Only leaves out", p.by, key)
		}
	}
	return &o, nil
}

// readFiles reads a user's own scripts.
func (o *options) readFiles(patterns []string) (list []*scenarios.Script, err error) {
	for _, pattern := range patterns {
		files, err := filepath.Glob(pattern)
		if err != nil {
			return nil, fmt.Errorf("Scripts: %q is no pattern of files: %v", pattern, err)
		}
		if len(files) == 0 {
			return nil, fmt.Errorf("Scripts: there is no file %q below the test's directory", pattern)
		}
		for _, file := range files {
			if info, err := os.Stat(file); err == nil && info.IsDir() {
				own, err := o.readFiles([]string{filepath.Join(file, "*.txt")})
				if err != nil {
					return nil, err
				}
				list = append(list, own...)
				continue
			}
			script, err := readScript(file)
			if err != nil {
				return nil, err
			}
			if was, twice := o.files[script.Key()]; was == file {
				continue
			} else if twice {
				return nil, fmt.Errorf("Scripts: %s and %s have one name: rename one of them", was, file)
			}
			o.files[script.Key()] = file
			list = append(list, script)
		}
	}
	return list, nil
}

// readScript reads one of a user's scripts.
func readScript(file string) (*scenarios.Script, error) {
	source, err := input.Read(file, input.Text)
	if err != nil {
		return nil, err
	}
	return scenarios.Parse(file, source)
}

// promise notes what is promised of a scenario. What names it counts for more than a
// pattern.
func (o *options) promise(key string, p promise) error {
	was, twice := o.promises[key]
	switch {
	case twice && was.pattern == p.pattern && (was.by != p.by || !slices.Equal(was.may, p.may)):
		return fmt.Errorf("%s is spoken of twice, in %s and in %s: drop one of them", key, was.by, p.by)
	case twice && p.pattern:
		return nil
	}
	o.promises[key] = p
	return nil
}

// match returns the scenarios that a pattern names.
func match(pattern string, all []*scenarios.Script) (list []*scenarios.Script, err error) {
	var names []string
	for _, script := range all {
		names = append(names, script.Key())
		matched, err := path.Match(pattern, script.Key())
		if err != nil {
			return nil, fmt.Errorf("%q is no pattern of scenarios: %v", pattern, err)
		}
		if matched {
			list = append(list, script)
		}
	}
	if len(list) == 0 {
		return nil, fmt.Errorf("no scenario is called %q%s", pattern, suggestion(pattern, names))
	}
	return list, nil
}

// anomaliesOf returns the anomalies of these names, in the order of [checker.Anomalies].
func anomaliesOf(names []string) (list []checker.Anomaly, err error) {
	var all []string
	for _, a := range checker.Anomalies() {
		all = append(all, string(a))
		if slices.Contains(names, string(a)) {
			list = append(list, a)
		}
	}
	for _, name := range names {
		if !slices.Contains(all, name) {
			return nil, fmt.Errorf("no anomaly is called %q%s", name, suggestion(name, all))
		}
	}
	return list, nil
}

// suggestion says which of the known words was meant, or what there is.
func suggestion(word string, known []string) string {
	if meant, ok := suggest.Of(word, known); ok {
		return fmt.Sprintf(" (did you mean %q?)", meant)
	}
	text := ": there are"
	for i, name := range known {
		if i > 0 {
			text += ","
		}
		text += " " + name
	}
	return text
}
