package histories

import "olympos.io/encoding/edn"

// plainMap reads a map of EDN as Jepsen writes most operations: keywords, each
// with a keyword, a whole number, a text without escapes, or nil, and spaces or
// commas between. It returns false for any text that it doesn't understand, be
// it right or wrong. What it does understand it puts into fields as the library
// does, at a tenth of the cost.
func plainMap(b []byte, fields map[any]any) bool {
	if len(b) < 2 || b[0] != '{' {
		return false
	}
	i := 1
	for {
		if i = blanks(b, i); i >= len(b) {
			return false
		}
		if b[i] == '}' {
			return i == len(b)-1
		}
		name, next := plainWord(b, i)
		if next < 0 || next >= len(b) || !space(b[next]) {
			return false
		}
		if i = blanks(b, next); i >= len(b) {
			return false
		}
		var value any
		switch c := b[i]; {
		case c == ':':
			word, next := plainWord(b, i)
			if next < 0 {
				return false
			}
			value, i = edn.Keyword(word), next
		case c == '"':
			text, next := scanText(b, i+1, false)
			if next < 0 {
				return false
			}
			value, i = string(text), next
		case c == '-' || '0' <= c && c <= '9':
			n, next := scanNumber(b, i)
			if next < 0 {
				return false
			}
			value, i = n, next
		case c == 'n' && len(b)-i > 3 && string(b[i:i+3]) == "nil":
			i += 3
		default:
			return false
		}
		if i >= len(b) || b[i] != '}' && !space(b[i]) {
			return false
		}
		key := edn.Keyword(name)
		if _, twice := fields[key]; twice {
			return false
		}
		fields[key] = value
	}
}

func blanks(b []byte, i int) int {
	for i < len(b) && space(b[i]) {
		i++
	}
	return i
}

// plainWord returns the keyword that begins at i, without its colon, and where
// it is over; -1 if it is not one of letters and single hyphens.
func plainWord(b []byte, i int) (string, int) {
	if b[i] != ':' {
		return "", -1
	}
	from := i + 1
	for i = from; i < len(b) && ('a' <= b[i] && b[i] <= 'z' || b[i] == '-' && i > from && b[i-1] != '-'); i++ {
	}
	if i == from {
		return "", -1
	}
	for _, word := range [...]string{"index", "time", "type", "process", "f", "value", "invoke", "ok", "fail", "info", "acquire", "release"} {
		if string(b[from:i]) == word { // does not allocate
			return word, i
		}
	}
	return string(b[from:i]), i
}
