package workerpool

import (
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// TestExcerpt checks that the beginning and the end are kept in order, however the input is split
// into writes, and that input that fits is kept completely.
func TestExcerpt(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var e headTail
		if rapid.Bool().Draw(t, "used before") {
			e.Write([]byte(strings.Repeat("z", 2*headLimit)))
			e.Reset()
		}
		var all strings.Builder
		sizes := rapid.SliceOfN(rapid.IntRange(0, headLimit), 0, 8).Draw(t, "sizes")
		for i, size := range sizes {
			part := strings.Repeat(string(rune('a'+i)), size)
			all.WriteString(part)
			if n, err := e.Write([]byte(part)); n != size || err != nil {
				t.Fatalf("Write = %d, %v", n, err)
			}
		}
		text, got := all.String(), e.String()
		if len(text) <= headLimit+tailLimit {
			if got != text {
				t.Fatalf("%d bytes that fit came out as %d others", len(text), len(got))
			}
			return
		}
		if !strings.HasPrefix(got, text[:headLimit]) || !strings.HasSuffix(got, text[len(text)-tailLimit:]) {
			t.Fatal("the beginning or the end is lost")
		}
		if len(got) > 64<<10 {
			t.Fatalf("%d bytes kept", len(got))
		}
	})
}
