// Package jsonscan has the parts of a reader of JSON lines that looks for fields that it
// knows, in one pass and without a copy of anything. They take what is plain and refuse the
// rest, wrong or only rare: that is for encoding/json, which also says what is wrong.
//
// All of them get the whole line and where to begin in it, and return where what they took
// is over, or -1.
package jsonscan

import (
	"encoding/binary"
	"math/bits"
	"unicode/utf8"
)

// Blanks returns where the spaces that begin at i, of which there are most
// often none, are over.
func Blanks(b []byte, i int) int {
	for i < len(b) && b[i] <= ' ' && (b[i] == ' ' || b[i] == '\t' || b[i] == '\r' || b[i] == '\n') {
		i++
	}
	return i
}

// Text returns the inside of the string that begins at from, behind its quote,
// and where it is over; -1 if there is something wrong with it, or it has
// escapes, unless it may have them: then its inside is not to be used.
func Text(b []byte, from int, escapes bool) ([]byte, int) {
	beyond := false // ASCII
	for i := from; ; {
		i = Plain(b, i)
		if i >= len(b) {
			return nil, -1
		}
		switch c := b[i]; {
		case c == '"':
			if beyond && !utf8.Valid(b[from:i]) {
				return nil, -1
			}
			return b[from:i], i + 1
		case c >= 0x80:
			beyond = true
			i++
		case c == '\\' && escapes:
			if i = escape(b, i+1); i < 0 {
				return nil, -1
			}
		default:
			return nil, -1
		}
	}
}

// escape returns where the escape is over whose letter is at i; -1 if it is
// none.
func escape(b []byte, i int) int {
	if i >= len(b) {
		return -1
	}
	switch b[i] {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		return i + 1
	case 'u':
		if len(b)-i < 5 {
			return -1
		}
		for _, c := range b[i+1 : i+5] {
			if !('0' <= c && c <= '9' || 'a' <= c|0x20 && c|0x20 <= 'f') {
				return -1
			}
		}
		return i + 5
	}
	return -1
}

// Plain returns where, from i on, there is a quote, a backslash, a control
// character or something beyond ASCII; len(b) if nowhere. It looks at eight bytes
// at a time: most texts are shorter.
func Plain(b []byte, i int) int {
	const ones, highs = 0x0101010101010101, 0x8080808080808080
	for ; i+8 <= len(b); i += 8 {
		x := binary.LittleEndian.Uint64(b[i:])
		quote, slash := x^(ones*'"'), x^(ones*'\\')
		// Of each the lowest bit that is set is right: nothing was borrowed
		// from below it.
		if found := (x | (x-ones*' ')&^x | (quote-ones)&^quote | (slash-ones)&^slash) & highs; found != 0 {
			return i + bits.TrailingZeros64(found)/8
		}
	}
	for ; i < len(b); i++ {
		if c := b[i]; c == '"' || c == '\\' || c < ' ' || c >= 0x80 {
			return i
		}
	}
	return len(b)
}

// Number returns the whole number that begins at i, and where it is over; -1
// if it is not a plain one, or too long to be sure that it fits.
func Number(b []byte, i int) (int64, int) {
	from := i
	if b[i] == '-' {
		i++
	}
	digits := i
	n := int64(0)
	for i < len(b) {
		d := b[i] - '0'
		if d > 9 {
			break
		}
		n = n*10 + int64(d)
		i++
	}
	// Beyond 18 digits n may have gone over.
	if i == digits || i-digits > 18 || b[digits] == '0' && i-digits > 1 {
		return 0, -1
	}
	if from < digits {
		n = -n
	}
	return n, i
}
