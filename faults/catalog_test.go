package faults_test

import (
	"regexp"
	"testing"

	"github.com/lockfault/lockfault/faults"
)

// TestVocabulary checks that each entry of the catalog has a unique, well-formed name, a syntax and
// a summary. Tests of the parser, in package scenarios, check that every example parses and that
// the catalog has every fault.
func TestVocabulary(t *testing.T) {
	name := regexp.MustCompile(`^[a-z]+(-[a-z]+)*$`)
	seen := map[string]bool{}
	for _, entry := range faults.Catalog() {
		if !name.MatchString(entry.Name) {
			t.Errorf("%q is not a name of lower-case words joined by dashes", entry.Name)
		}
		if seen[entry.Name] {
			t.Errorf("%s is listed twice", entry.Name)
		}
		seen[entry.Name] = true
		if entry.Syntax == "" || entry.Summary == "" {
			t.Errorf("%s lacks its syntax or its explanation", entry.Name)
		}
	}
}
