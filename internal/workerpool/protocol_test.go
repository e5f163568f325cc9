package workerpool

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestLineWriterCutsAnywhere(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringMatching(`[ab\n]{0,40}`).Draw(t, "text")
		var lines []string
		w := &lineWriter{take: func(line []byte) error {
			lines = append(lines, string(line))
			return nil
		}}
		for rest := text; rest != ""; {
			n := rapid.IntRange(1, len(rest)).Draw(t, "n")
			if _, err := w.Write([]byte(rest[:n])); err != nil {
				t.Fatal(err)
			}
			rest = rest[n:]
		}
		want := strings.Split(text, "\n")
		want = want[:len(want)-1] // text without a newline is no line
		if !slices.Equal(lines, want) {
			t.Fatalf("%q became %q", text, lines)
		}
	})
}

func TestLineWriterGivesUp(t *testing.T) {
	w := &lineWriter{take: func([]byte) error { return nil }}
	var err error
	for range 20 {
		if _, err = w.Write(make([]byte, 1<<20)); err != nil {
			break
		}
	}
	if !errors.Is(err, errEndlessLine) {
		t.Errorf("error %v, want %v", err, errEndlessLine)
	}
}
