package nearest_test

import (
	"strings"
	"testing"

	"github.com/lockfault/lockfault/internal/nearest"
)

func TestOf(t *testing.T) {
	verbs := []string{"acquire", "try", "release", "extend", "pause", "resume", "crash", "restart", "A", "n1"}
	for _, c := range []struct {
		word string
		from []string
		want string // empty: nothing is near
	}{
		{"aquire", verbs, "acquire"},
		{"acquiire", verbs, "acquire"},
		{"crsah", verbs, "crash"},
		{"tyr", verbs, "try"},
		{"RELEASE", verbs, "release"},
		{"a", verbs, "A"},
		{"B", verbs, ""},
		{"n2", verbs, ""},
		{"reset", []string{"restart", "resett"}, "resett"},
		{"pass", []string{"past", "pasta", "mass"}, "past"},
		{"elephant", verbs, ""},
		{"", verbs, ""},
		{"try", nil, ""},
		{"try", []string{"", "try"}, ""},
		{"überlapp", []string{"überlappt"}, "überlappt"},
		{strings.Repeat("a", 100), []string{strings.Repeat("a", 101)}, ""},
	} {
		got, ok := nearest.Of(c.word, c.from)
		if got != c.want || ok != (c.want != "") {
			t.Errorf("Of(%q, %q) = %q, %v; want %q", c.word, c.from, got, ok, c.want)
		}
	}
}
