package suggest_test

import (
	"strings"
	"testing"

	"github.com/lockfault/lockfault/internal/suggest"
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
		{"gc-puase", []string{"late-release", "gc-pause-holding", "gc-pause"}, "gc-pause"},
		{"gc-puase", []string{"late-release", "gc-pause-holding", "gc-pause-releasing"}, "gc-pause-holding"},
		{"gc-pause", []string{"late-release", "gc-pause-holding"}, "gc-pause-holding"},
		{"pause", []string{"gc-pause-holding"}, ""},
		{"nodes", []string{"no-such", "node-down"}, "node-down"},
		{"--x", []string{"--out", "--redis-server"}, ""},
		{"--rediss", []string{"--out", "--redis-server"}, "--redis-server"},
		{strings.Repeat("a", 100), []string{strings.Repeat("a", 101)}, ""},
	} {
		got, ok := suggest.Of(c.word, c.from)
		if got != c.want || ok != (c.want != "") {
			t.Errorf("Of(%q, %q) = %q, %v; want %q", c.word, c.from, got, ok, c.want)
		}
	}
}
