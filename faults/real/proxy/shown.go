package proxy

import (
	"bytes"
	"encoding/hex"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Shown returns a value in readable form: the text itself, or for binary data \x and its bytes in
// hexadecimal.
func Shown(b []byte) string {
	if utf8.Valid(b) && bytes.IndexFunc(b, func(r rune) bool { return r < ' ' && r != '\n' && r != '\t' && r != '\r' }) < 0 {
		return string(b)
	}
	return `\x` + hex.EncodeToString(b)
}

// MaxText is the maximum length of a [Part]'s text, in characters.
const MaxText = 120

// Shorten returns a text on one line, cut to MaxText characters and then ending in "…". Control
// characters become blanks, and invalid UTF-8 becomes U+FFFD.
func Shorten(text string) string {
	text = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(text, "\uFFFD"))
	if utf8.RuneCountInString(text) <= MaxText {
		return text
	}
	return string([]rune(text)[:MaxText-1]) + "…"
}
