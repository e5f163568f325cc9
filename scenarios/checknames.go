package scenarios

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/lockfault/lockfault/internal/suggest"
)

// CheckNames returns a [*SyntaxError] for the first selector of the script that is unknown, or nil.
// A selector is known if it matches a given strategy, is a given tag, or is listed in the script's
// elsewhere setting. An unknown name is most likely a typing error, and its line would apply to no
// strategy.
func (s *Script) CheckNames(strategies, tags []string) error {
	known := slices.Clone(s.Elsewhere)
	for _, name := range strategies {
		known = append(known, Selector(name))
	}
	for _, tag := range tags {
		known = append(known, Selector("@"+tag))
	}
	number := 0
	for _, list := range s.selectors() {
		for _, selector := range list {
			if !selector.amongst(known) {
				return s.stranger(number, selector, known)
			}
			number++
		}
	}
	return nil
}

// Selects returns the selectors of the for and expect lines, without repetition and in order of
// appearance.
func (s *Script) Selects() []Selector {
	var all []Selector
	for _, selector := range slices.Concat(s.selectors()...) {
		if !slices.Contains(all, selector) {
			all = append(all, selector)
		}
	}
	return all
}

func (s *Script) selectors() [][]Selector {
	lists := [][]Selector{s.For}
	for _, e := range s.Expects {
		lists = append(lists, e.For)
	}
	return lists
}

// Pattern reports whether the selector may select several names.
func (s Selector) Pattern() bool { return strings.Contains(string(s), "*") }

func (s Selector) tag() bool { return strings.HasPrefix(string(s), "@") }

// amongst reports whether the selector equals or matches a known selector.
func (s Selector) amongst(known []Selector) bool {
	return slices.ContainsFunc(known, func(k Selector) bool {
		matched, err := path.Match(string(s), string(k))
		return k == s || matched && err == nil && !k.tag()
	})
}

// stranger returns the error for an unknown selector, given its number in the script.
func (s *Script) stranger(number int, selector Selector, known []Selector) error {
	e := &SyntaxError{File: s.layout.file, Line: 1, Column: 1}
	if number < len(s.layout.selectors) {
		e.Line, e.Column = s.layout.selectors[number].line, s.layout.selectors[number].column
	}
	what := "is called"
	switch {
	case selector.tag():
		what = "has the tag"
	case selector.Pattern():
		what = "has a name such as"
	}
	e.Message = fmt.Sprintf("no strategy %s %q", what, shorten(string(selector)))
	var near []string
	for _, k := range known {
		if k.tag() == selector.tag() {
			near = append(near, string(k))
		}
	}
	if e.Suggestion, _ = suggest.Of(string(selector), near); e.Suggestion == "" {
		e.Message += ": what only another program has must stand behind elsewhere, among the settings"
	}
	return e
}
