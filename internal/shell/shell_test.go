package shell_test

import (
	"errors"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/lockfault/lockfault/internal/shell"
)

func TestSplit(t *testing.T) {
	for text, want := range map[string][]string{
		"python3 my_lock.py":   {"python3", "my_lock.py"},
		"  a \t b\n":           {"a", "b"},
		`'a b' "c d"e`:         {"a b", "c de"},
		`a\ b "c\"d" 'e\f'`:    {"a b", `c"d`, `e\f`},
		`"a\n" $HOME *.py | x`: {`a\n`, "$HOME", "*.py", "|", "x"},
		`'' ""`:                {"", ""},
		"":                     nil,
	} {
		if got, err := shell.Split(text); err != nil || !slices.Equal(got, want) {
			t.Errorf("%q is %q, %v; want %q", text, got, err, want)
		}
	}
	for _, text := range []string{`'a`, `"a`, `a\`} {
		if _, err := shell.Split(text); !errors.Is(err, shell.ErrOpenQuote) {
			t.Errorf("%q: %v", text, err)
		}
	}
}

// Whatever is quoted is one word again.
func TestQuote(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		words := rapid.SliceOf(rapid.String()).Draw(t, "words")
		text := shell.Line(words)
		if got, err := shell.Split(text); err != nil || !slices.Equal(got, words) && len(got)+len(words) > 0 {
			t.Errorf("%q is %q, %v, want %q", text, got, err, words)
		}
	})
}
