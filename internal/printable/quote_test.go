package printable_test

import (
	"bytes"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/lockfault/lockfault/internal/printable"
)

func TestQuoter(t *testing.T) {
	for text, want := range map[string]string{
		"":                        "",
		":":                       ":",
		"::":                      "| ::",
		"a\n::error::b\n":         "a\n| ::error::b\n",
		" \t::warning::\n":        " \t| ::warning::\n",
		"a::b\n:c\n: :\n:\n:\n::": "a::b\n:c\n: :\n:\n:\n| ::",
		"\r\n\n:::":               "\r\n\n| :::",
	} {
		var b bytes.Buffer
		q := printable.NewQuoter(&b)
		if _, err := q.Write([]byte(text)); err != nil {
			t.Fatal(err)
		}
		if err := q.Flush(); err != nil || b.String() != want {
			t.Errorf("%q: %q, %v; want %q", text, &b, err, want)
		}
	}
}

// A Quoter writes the same wherever text is split, and no line that passes for an annotation.
func TestQuoterSplits(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringMatching(`[:a \n]{0,20}`).Draw(t, "text")
		var whole, split bytes.Buffer
		one, many := printable.NewQuoter(&whole), printable.NewQuoter(&split)
		one.Write([]byte(text))
		one.Flush()
		for i := range len(text) {
			many.Write([]byte{text[i]})
		}
		many.Flush()
		if whole.String() != split.String() {
			t.Fatalf("%q: %q, and split %q", text, &whole, &split)
		}
		for line := range strings.Lines(whole.String()) {
			if strings.HasPrefix(strings.TrimLeft(line, " "), "::") {
				t.Fatalf("%q: %q", text, &whole)
			}
		}
		if strings.ReplaceAll(whole.String(), "| ", "") != strings.ReplaceAll(text, "| ", "") {
			t.Fatalf("%q: %q", text, &whole)
		}
	})
}
