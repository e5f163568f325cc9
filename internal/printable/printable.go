// Package printable replaces the characters of foreign text that act on a terminal, a log or a
// browser: control characters, the characters that change the direction of text, and bytes that
// are not UTF-8. Names, errors and histories come from files and programs of others, so each
// output of lockfault passes through this package. It imports the standard library only.
package printable

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"
)

// Unprintable reports whether a character acts on what displays it: the control characters C0,
// DEL and C1, the line and paragraph separators, and the marks, embeddings, overrides and
// isolates that change the direction of text. A newline and a tab are unprintable.
func Unprintable(r rune) bool {
	switch {
	case r < 0x20, r >= 0x7f && r < 0xa0:
		return true
	case r < 0x61c:
		return false
	}
	return r == 0x61c || r == 0x200e || r == 0x200f || r >= 0x2028 && r <= 0x202e || r >= 0x2066 && r <= 0x2069
}

// Rune returns the character to print in the place of r: r itself if it is printable, the picture
// of a C0 control character or of DEL, such as ␛, and U+FFFD for the others. The text stays as
// wide as it was. It is a mapping for [strings.Map], which replaces bytes that are not UTF-8, too.
func Rune(r rune) rune {
	switch {
	case !Unprintable(r):
		return r
	case r >= 0 && r < 0x20:
		return 0x2400 + r
	case r == 0x7f:
		return 0x2421
	}
	return utf8.RuneError
}

// textRune returns what Rune returns, but keeps a newline and a tab.
func textRune(r rune) rune {
	if r == '\n' || r == '\t' {
		return r
	}
	return Rune(r)
}

// Line returns text that is one line and has printable characters only.
func Line(text string) string { return strings.Map(Rune, text) }

// Text returns text that has printable characters, newlines and tabs only.
func Text(text string) string { return strings.Map(textRune, text) }

// IsLine reports whether [Line] returns text as it is: it is UTF-8 and has printable characters only.
func IsLine(text string) bool {
	return utf8.ValidString(text) && strings.IndexFunc(text, Unprintable) < 0
}

// A Writer writes text that passes [Text] to another writer. A character may be split among calls
// of Write. Create a Writer with [NewWriter] or [NewJSONWriter]. It is not safe for concurrent use.
type Writer struct {
	to      io.Writer
	replace func(out []byte, r rune) []byte
	begun   []byte // the beginning of a character, which the next call of Write may complete
}

// NewWriter returns a Writer that replaces characters as [Text] does.
func NewWriter(w io.Writer) *Writer {
	return &Writer{to: w, replace: func(out []byte, r rune) []byte { return utf8.AppendRune(out, textRune(r)) }}
}

// NewJSONWriter returns a Writer for JSON. It writes an unprintable character as the JSON escape of
// the same character, so the strings in the document keep their values.
func NewJSONWriter(w io.Writer) *Writer {
	return &Writer{to: w, replace: func(out []byte, r rune) []byte {
		if Unprintable(r) && r != '\n' && r != '\t' {
			return fmt.Appendf(out, `\u%04x`, r)
		}
		return utf8.AppendRune(out, r)
	}}
}

// Write writes text. It returns how much of text was accepted, which may differ from how much was
// written.
func (w *Writer) Write(text []byte) (int, error) {
	whole := text
	if len(w.begun) > 0 {
		whole = append(w.begun, text...)
		w.begun = nil
	}
	whole, begun := complete(whole)
	w.begun = bytes.Clone(begun)
	return len(text), w.write(whole)
}

// Flush writes the rest of an incomplete character, which is not UTF-8.
func (w *Writer) Flush() error {
	begun := w.begun
	w.begun = nil
	return w.write(begun)
}

func (w *Writer) write(text []byte) error {
	clean := 0
	for clean < len(text) {
		r, size := utf8.DecodeRune(text[clean:])
		if r == utf8.RuneError && size == 1 || Unprintable(r) && r != '\n' && r != '\t' {
			break
		}
		clean += size
	}
	if clean < len(text) {
		out := bytes.Clone(text[:clean])
		for rest := text[clean:]; len(rest) > 0; {
			r, size := utf8.DecodeRune(rest)
			out, rest = w.replace(out, r), rest[size:]
		}
		text = out
	}
	if len(text) == 0 {
		return nil
	}
	_, err := w.to.Write(text)
	return err
}

// complete splits text before a character at its end that lacks bytes.
func complete(text []byte) (whole, begun []byte) {
	for n := 1; n < utf8.UTFMax && n <= len(text); n++ {
		if at := len(text) - n; utf8.RuneStart(text[at]) {
			if !utf8.FullRune(text[at:]) {
				return text[:at], text[at:]
			}
			break
		}
	}
	return text, nil
}
