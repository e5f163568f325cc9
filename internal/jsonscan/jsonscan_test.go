package jsonscan

import (
	"bytes"
	"testing"

	"pgregory.net/rapid"
)

// Texts are looked at eight bytes at a time; where they end must not depend on
// where they begin.
func TestPlain(t *testing.T) {
	for _, stop := range []byte{'"', '\\', 0, 0x1f, 0x80, 0xff} {
		for length := range 20 {
			for behind := range 10 {
				text := append(bytes.Repeat([]byte("~"), length), stop)
				text = append(text, bytes.Repeat([]byte(" !"), behind)...)
				if got := Plain(text, 0); got != length {
					t.Errorf("%q: %d, want %d", text, got, length)
				}
			}
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.SliceOf(rapid.SampledFrom([]byte("\x00\x1f !\"#[\\]\x7f\x80\xff"))).Draw(t, "text")
		want := len(text)
		for i, c := range text {
			if c == '"' || c == '\\' || c < ' ' || c >= 0x80 {
				want = i
				break
			}
		}
		if got := Plain(text, 0); got != want {
			t.Fatalf("%q: %d, want %d", text, got, want)
		}
	})
}
