package checker_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/lockfault/lockfault/checker"
)

func TestDescriptions(t *testing.T) {
	letters := map[string]checker.Anomaly{}
	classes := []checker.Class{checker.Safety, checker.Damage, checker.Liveness, checker.Hygiene}
	for _, d := range checker.Descriptions() {
		if other, taken := letters[d.Letter]; taken || len(d.Letter) != 1 || !strings.Contains(strings.ToUpper(string(d.Name)), d.Letter) {
			t.Errorf("%s: its letter %q is taken by %q, or not of its name", d.Name, d.Letter, other)
		}
		letters[d.Letter] = d.Name
		if n := len([]rune(d.Short)); n == 0 || n > 9 {
			t.Errorf("%s: the short name %q has %d characters", d.Name, d.Short, n)
		}
		if d.Meaning == "" || strings.HasSuffix(d.Meaning, ".") {
			t.Errorf("%s: the meaning %q", d.Name, d.Meaning)
		}
		if !slices.Contains(classes, d.Class) {
			t.Errorf("%s: the class %q", d.Name, d.Class)
		}
		if got, known := checker.Describe(d.Name); !known || got.Letter != d.Letter {
			t.Errorf("%s is described as %+v, %v", d.Name, got.Name, known)
		}
	}
	if _, known := checker.Describe("nothing"); known {
		t.Error("an unknown anomaly is described")
	}
}
