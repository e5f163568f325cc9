package history

import (
	"bytes"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/lockfault/lockfault/internal/jsonscan"
)

// A fault is the reason why a value is not valid EDN.
type fault string

func (f fault) Error() string { return "it is not EDN: " + string(f) }

const (
	faultEnd  fault = "it ends too soon"
	faultDeep fault = "it nests too deep"
)

// The functions for EDN walk over the text: each takes the text and the position where something
// begins, and returns the position after it. Nothing is copied, and values that no caller needs are
// skipped without being parsed.

// ednNext returns the position of the next value or closing bracket, after spaces, comments and
// discarded values; the length of the text if there is none.
func ednNext(b []byte, i, depth int) (int, error) {
	if depth > maxDepth {
		return 0, faultDeep
	}
	for i < len(b) {
		switch c := b[i]; {
		case space(c):
			i++
		case c == ';':
			for i < len(b) && b[i] != '\n' {
				i++
			}
		case c == '#' && i+1 < len(b) && b[i+1] == '_':
			// #_ discards the next value, and #_ #_ the next two.
			at, err := ednNext(b, i+2, depth+1)
			if err != nil {
				return 0, err
			}
			if i, err = ednSkip(b, at, depth+1); err != nil {
				return 0, err
			}
		default:
			return i, nil
		}
	}
	return i, nil
}

// ednSkip returns the position after the value that begins at i.
func ednSkip(b []byte, i, depth int) (int, error) {
	if i >= len(b) {
		return 0, faultEnd
	}
	if depth > maxDepth {
		return 0, faultDeep
	}
	switch c := b[i]; c {
	case '{':
		return ednSkipAll(b, i+1, depth+1, '}', true)
	case '[':
		return ednSkipAll(b, i+1, depth+1, ']', false)
	case '(':
		return ednSkipAll(b, i+1, depth+1, ')', false)
	case '"':
		return ednSkipText(b, i+1)
	case '#':
		return ednSkipTagged(b, i, depth)
	case '\\':
		return ednSkipCharacter(b, i)
	case '}', ']', ')':
		return 0, fault("a value is missing before a " + string(c))
	}
	return ednSkipWord(b, i), nil
}

// ednSkipAll skips the values of a collection up to its closing bracket. The values of a map are
// pairs.
func ednSkipAll(b []byte, i, depth int, closing byte, pairs bool) (int, error) {
	for n := 0; ; n++ {
		at, err := ednNext(b, i, depth)
		switch {
		case err != nil:
			return 0, err
		case at >= len(b):
			return 0, faultEnd
		case b[at] == closing && pairs && n%2 != 0:
			return 0, fault("a map has a key without a value")
		case b[at] == closing:
			return at + 1, nil
		}
		if i, err = ednSkip(b, at, depth); err != nil {
			return 0, err
		}
	}
}

// ednPair returns the next key and value of a map, as raw EDN, and the position after them. At the
// map's closing bracket it returns no key, and the position after the bracket.
func ednPair(b []byte, i int) (key, value []byte, end int, err error) {
	from, err := ednNext(b, i, 1)
	switch {
	case err != nil:
		return nil, nil, 0, err
	case from >= len(b):
		return nil, nil, 0, faultEnd
	case b[from] == '}':
		return nil, nil, from + 1, nil
	}
	to, err := ednSkip(b, from, 1)
	if err != nil {
		return nil, nil, 0, err
	}
	at, err := ednNext(b, to, 1)
	switch {
	case err != nil:
		return nil, nil, 0, err
	case at >= len(b):
		return nil, nil, 0, faultEnd
	case b[at] == '}':
		return nil, nil, 0, fault("a map has a key without a value")
	}
	if end, err = ednSkip(b, at, 1); err != nil {
		return nil, nil, 0, err
	}
	return b[from:to], b[at:end:end], end, nil
}

// ednSkipText returns the position after the string whose contents begin at i.
func ednSkipText(b []byte, i int) (int, error) {
	for {
		i = jsonscan.Plain(b, i)
		switch {
		case i >= len(b):
			return 0, faultEnd
		case b[i] == '"':
			return i + 1, nil
		case b[i] == '\\':
			i++ // skip the escaped character, too
		}
		i++
	}
}

// ednSkipTagged skips a value that begins with #, except #_.
func ednSkipTagged(b []byte, i, depth int) (int, error) {
	if i+1 >= len(b) {
		return 0, faultEnd
	}
	switch c := b[i+1]; {
	case c == '{': // a set
		return ednSkipAll(b, i+2, depth+1, '}', false)
	case c == '"': // a regular expression, as Clojure prints it
		return ednSkipText(b, i+2)
	case c == '#': // ##NaN and the like
		return ednSkipWord(b, i), nil
	case !tagLetter(c):
		return 0, fault("there is a # before " + strconv.QuoteRune(rune(c)))
	}
	// A tag and its value, or #: with a namespace before a map.
	at, err := ednNext(b, ednSkipWord(b, i), depth+1)
	if err != nil {
		return 0, err
	}
	return ednSkip(b, at, depth+1)
}

// tagLetter reports whether c may be the first character after the # of a tag or of a namespaced
// map.
func tagLetter(c byte) bool {
	return 'a' <= c|0x20 && c|0x20 <= 'z' || c >= utf8.RuneSelf || c == ':'
}

// ednSkipCharacter skips a character such as \newline, \{ or \é.
func ednSkipCharacter(b []byte, i int) (int, error) {
	if i+1 >= len(b) {
		return 0, faultEnd
	}
	if space(b[i+1]) {
		return 0, fault("there is a \\ before a space")
	}
	return ednSkipWord(b, i+2), nil
}

// ednSkipWord returns the position after a number, symbol, keyword or tag.
func ednSkipWord(b []byte, i int) int {
	for i < len(b) && !endsWord(b[i]) {
		i++
	}
	return i
}

// endsWord reports whether the byte ends a number, symbol or keyword: a space, a bracket, or one of
// "\;.
func endsWord(c byte) bool {
	const (
		low  = 1<<'\t' | 1<<'\n' | 1<<'\v' | 1<<'\f' | 1<<'\r' | 1<<' ' | 1<<'"' | 1<<'(' | 1<<')' | 1<<',' | 1<<';'
		high = 1<<('['-64) | 1<<('\\'-64) | 1<<(']'-64) | 1<<('{'-64) | 1<<('}'-64)
	)
	if c < 64 {
		return uint64(low)>>c&1 != 0
	}
	return c < 128 && uint64(high)>>(c-64)&1 != 0
}

// ednNumber parses a whole number, such as 17, -3 or 5N; false for any other text.
func ednNumber(text []byte) (int64, bool) {
	if len(text) == 0 {
		return 0, false
	}
	if n, end := jsonscan.Number(text, 0); end == len(text) {
		return n, true
	}
	text = bytes.TrimSuffix(text, []byte("N"))
	digits := strings.TrimLeft(string(text), "+-")
	if len(text)-len(digits) > 1 || !isWhole(digits) || len(digits) > 1 && digits[0] == '0' {
		return 0, false
	}
	n, err := strconv.ParseInt(string(text), 10, 64)
	return n, err == nil
}

// ednKeyword returns the name of a keyword, without its colon; false for any other text.
func ednKeyword(text []byte) ([]byte, bool) {
	if len(text) < 2 || text[0] != ':' {
		return nil, false
	}
	return text[1:], true
}

// ednNil reports whether the text is nil or empty.
func ednNil(text []byte) bool { return len(text) == 0 || string(text) == "nil" }

// ednText returns the contents of a string, unescaped; false for any other text.
func ednText(text []byte) ([]byte, bool) {
	if len(text) < 2 || text[0] != '"' {
		return nil, false
	}
	inside := text[1 : len(text)-1]
	if end := jsonscan.Plain(inside, 0); end == len(inside) {
		return inside, true
	}
	var out []byte
	for i := 0; i < len(inside); i++ {
		c := inside[i]
		if c != '\\' {
			out = append(out, c)
			continue
		}
		if i++; i >= len(inside) {
			return nil, false
		}
		if inside[i] != 'u' {
			plain, ok := ednEscapes[inside[i]]
			if !ok {
				return nil, false
			}
			out = append(out, plain)
			continue
		}
		if len(inside)-i < 5 {
			return nil, false
		}
		n, err := strconv.ParseUint(string(inside[i+1:i+5]), 16, 16)
		if err != nil {
			return nil, false
		}
		out = utf8.AppendRune(out, rune(n))
		i += 4
	}
	return out, true
}

// ednEscapes holds the characters after a backslash, except u, and what they stand for.
var ednEscapes = map[byte]byte{'n': '\n', 't': '\t', 'r': '\r', 'b': '\b', 'f': '\f', '"': '"', '\\': '\\', '/': '/'}

// ednSymbol reports whether the text is a symbol other than nil, true and false.
func ednSymbol(text []byte) bool {
	if len(text) == 0 || '0' <= text[0] && text[0] <= '9' {
		return false
	}
	if c := text[0]; (c == '-' || c == '+') && len(text) > 1 && '0' <= text[1] && text[1] <= '9' {
		return false
	}
	for i, c := range text {
		switch {
		case 'a' <= c|0x20 && c|0x20 <= 'z' || c >= utf8.RuneSelf:
		case strings.IndexByte(".*+!-_?$%&=<>/", c) >= 0:
		case i > 0 && ('0' <= c && c <= '9' || strings.IndexByte(":#'", c) >= 0):
		default:
			return false
		}
	}
	switch string(text) {
	case "nil", "true", "false":
		return false
	}
	return true
}
