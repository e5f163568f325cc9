// Package jsonscan is a fast reader of JSON lines. [Lines] reads a line into a struct in one pass; the
// functions are its parts. Both accept plain JSON and reject everything else, invalid or only rare;
// callers use encoding/json for rejected lines, which also explains what is wrong.
//
// Every function gets the whole line and a position in it, and returns the position after the
// accepted part, or -1.
package jsonscan

import (
	"encoding/binary"
	"math/bits"
	"unicode/utf8"
)

// Blanks returns the position after the spaces that begin at i, which is usually i.
func Blanks(b []byte, i int) int {
	for i < len(b) && b[i] <= ' ' && (b[i] == ' ' || b[i] == '\t' || b[i] == '\r' || b[i] == '\n') {
		i++
	}
	return i
}

// text returns the contents of the string whose contents begin at from, after the opening quote,
// whether they have escapes, and the position after the closing quote. The position is -1 if the
// string is invalid, or has an escape that names a character by its number.
func text(b []byte, from int) (contents []byte, escaped bool, end int) {
	beyond := false // beyond ASCII
	for i := from; ; {
		i = Plain(b, i)
		if i >= len(b) {
			return nil, false, -1
		}
		switch c := b[i]; {
		case c == '"':
			if beyond && !utf8.Valid(b[from:i]) {
				return nil, false, -1
			}
			return b[from:i], escaped, i + 1
		case c >= 0x80:
			beyond = true
			i++
		case c == '\\' && i+1 < len(b) && b[i+1] != 'u':
			escaped = true
			i += 2
		default:
			return nil, false, -1
		}
	}
}

// Plain returns the position of the first quote, backslash, control character or non-ASCII byte
// from i on; len(b) if there is none. Plain examines eight bytes at a time; most texts are shorter.
func Plain(b []byte, i int) int {
	const ones, highs = 0x0101010101010101, 0x8080808080808080
	for ; i+8 <= len(b); i += 8 {
		x := binary.LittleEndian.Uint64(b[i:])
		quote, slash := x^(ones*'"'), x^(ones*'\\')
		// In each term, the lowest set bit is correct, because no borrow came from below it.
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

// Number returns the whole number that begins at i, and the position after it. The position is -1
// if the number is not a plain one, or has more than 18 digits and may not fit.
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
	// More than 18 digits may have overflowed n.
	if i == digits || i-digits > 18 || b[digits] == '0' && i-digits > 1 {
		return 0, -1
	}
	if from < digits {
		n = -n
	}
	return n, i
}
