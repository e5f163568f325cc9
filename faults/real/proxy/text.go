package proxy

import (
	"bytes"
	"encoding/hex"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Shown is a value as it can be read: as it is if it is text, else by its bytes in hexadecimal digits behind \x.
func Shown(b []byte) string {
	if utf8.Valid(b) && bytes.IndexFunc(b, func(r rune) bool { return r < ' ' && r != '\n' && r != '\t' && r != '\r' }) < 0 {
		return string(b)
	}
	return `\x` + hex.EncodeToString(b)
}

// MaxText is how much of a [Part]'s text is kept, in letters.
const MaxText = 120

// Shorten returns a text on one line, cut short, which it says. What is no text is replaced.
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
