package cli

import (
	"bytes"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// Whoever takes the "-" lines out and puts the "+" lines in gets the second
// text.
func TestDiffLeadsFromOneToTheOther(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringMatching(`([abc]\n){0,8}`)
		a, b := text.Draw(t, "a"), text.Draw(t, "b")
		var out bytes.Buffer
		writeDiff(&out, []byte(a), []byte(b))
		if a == b && out.Len() > 0 {
			t.Fatalf("no difference, but %q", &out)
		}
		removed, added := 0, 0
		for line := range strings.Lines(out.String()) {
			switch line[0] {
			case '-':
				removed++
			case '+':
				added++
			default:
				t.Fatalf("a line without a sign: %q", line)
			}
		}
		if got, want := strings.Count(a, "\n")-removed+added, strings.Count(b, "\n"); got != want {
			t.Fatalf("%q to %q: the difference leads to %d lines, want %d:\n%s", a, b, got, want, &out)
		}
	})
}

func TestDiff(t *testing.T) {
	var out bytes.Buffer
	writeDiff(&out, []byte("one\ntwo\nthree\n"), []byte("one\n2\nthree\nfour\n"))
	if got, want := out.String(), "-2: two\n+2: 2\n+4: four\n"; got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}
