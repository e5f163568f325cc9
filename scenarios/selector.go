package scenarios

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/lockfault/lockfault/checker"
)

// Matches reports whether the selector selects a strategy with the given name and tags. In a name,
// "*" stands for any characters.
func (s Selector) Matches(name string, tags []string) bool {
	if tag, ok := strings.CutPrefix(string(s), "@"); ok {
		return slices.Contains(tags, tag)
	}
	matched, err := path.Match(string(s), name)
	return matched && err == nil
}

// validSelector reports whether text has the form of a selector.
func validSelector(text string) bool {
	lower := func(letter rune) bool { return isLower(letter) || isDigit(letter) || letter == '-' }
	if tag, ok := strings.CutPrefix(text, "@"); ok {
		return madeOf(tag, lower)
	}
	return madeOf(text, func(letter rune) bool { return lower(letter) || letter == '*' })
}

// selects reports whether a list of selectors selects a strategy. An empty list selects every
// strategy.
func selects(list []Selector, name string, tags []string) bool {
	return len(list) == 0 || slices.ContainsFunc(list, func(s Selector) bool { return s.Matches(name, tags) })
}

// Expected returns the anomalies that the script expects of a strategy with the given name and
// tags, in the order of [checker.Anomalies]. The last expect line that selects the strategy counts;
// without such a line the result is empty.
func (s *Script) Expected(strategyName string, tags []string) []checker.Anomaly {
	line, _ := s.ExpectOf(strategyName, tags)
	return inOrder(line.Anomalies)
}

// ExpectOf returns the last expect line that selects a strategy with the given name and tags, and
// whether such a line exists.
func (s *Script) ExpectOf(strategyName string, tags []string) (Expect, bool) {
	for _, e := range slices.Backward(s.Expects) {
		if selects(e.For, strategyName, tags) {
			return e, true
		}
	}
	return Expect{}, false
}

// inOrder returns the anomalies without repetition in the order of [checker.Anomalies], or nil for
// an empty list.
func inOrder(list []checker.Anomaly) (sorted []checker.Anomaly) {
	for _, anomaly := range checker.Anomalies() {
		if slices.Contains(list, anomaly) {
			sorted = append(sorted, anomaly)
		}
	}
	return sorted
}

// AppliesTo reports whether the script applies to a strategy with the given properties, and the
// reason if not. A number of nodes of 0 means 1.
func (s *Script) AppliesTo(strategyName string, tags []string, nodes int) (ok bool, why string) {
	nodes = max(nodes, 1)
	if !selects(s.For, strategyName, tags) {
		return false, fmt.Sprintf("%s is for %s, not for %s", s.Name, joined(s.For), strategyName)
	}
	if s.Nodes > nodes {
		return false, fmt.Sprintf("%s needs %d nodes, %s runs on %d", s.Name, s.Nodes, strategyName, nodes)
	}
	return true, ""
}
