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

// Option selects scenarios, or sets the expectations for scenarios.
type Option struct {
	of        string   // the function that made the option
	names     []string // of scenarios, or of files; patterns
	anomalies []string
}

// Names of the functions that make options.
const (
	survives = "Survives"
	accepts  = "Accepts"
	only     = "Only"
	scripts  = "Scripts"
)

// Survives requires that the lock shows no anomaly under the named scenarios. Names may be patterns
// such as "failover-*". The test fails if the lock shows an anomaly, or if the scenario does not
// apply to the lock.
func Survives(scenarios ...string) Option { return Option{of: survives, names: scenarios} }

// Accepts lists the anomalies that the lock may show under a scenario: these at most, regardless of
// other locks of its kind. The scenario is a name or a pattern.
func Accepts(scenario string, anomalies ...string) Option {
	return Option{of: accepts, names: []string{scenario}, anomalies: anomalies}
}

// Only selects the library's scenarios to run, by names or patterns. Without a name, no scenario of
// the library runs.
func Only(scenarios ...string) Option { return Option{of: only, names: scenarios} }

// Scripts adds the user's own scenarios from the files that match the patterns, relative to the
// test's directory. docs/script.md describes the language. [Survives] and [Accepts] refer to such a
// scenario by its file name, such as "mine.txt".
func Scripts(patterns ...string) Option { return Option{of: scripts, names: patterns} }

// options holds the evaluated options of one test.
type options struct {
	scripts  []*scenarios.Script // to run
	whole    bool                // without Only
	files    map[string]string   // of the user's own scripts, by their keys
	promises map[string]promise  // by the scripts' keys
}

// promise is the test's expectation for one scenario.
type promise struct {
	by      string // the function
	pattern bool   // the option used a pattern
	may     []checker.Anomaly
}

// read evaluates the options, in any order.
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
	o.scripts, o.whole = all, true
	for _, option := range list {
		if option.of == only {
			o.scripts, o.whole = o.scripts[:0:0], false
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
	if len(o.scripts) < len(all) { // with Only: the user's own scripts run nevertheless
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

// readFiles reads the user's own scripts.
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

// readScript reads one of the user's scripts.
func readScript(file string) (*scenarios.Script, error) {
	source, err := input.Read(file, input.Text)
	if err != nil {
		return nil, err
	}
	return scenarios.Parse(file, source)
}

// promise records the expectation for a scenario. An option with the scenario's name has priority
// over an option with a pattern.
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

// match returns the scenarios that match a pattern.
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

// anomaliesOf returns the anomalies with the given names, in the order of [checker.Anomalies].
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

// suggestion returns the known word that is closest to word, or the list of all known words.
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
