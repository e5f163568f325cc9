package histories

// scan reads a line in the form in which checker.Encode writes it: no spaces,
// ASCII, no escapes, whole numbers. It returns false, having filled in some
// fields, for any line that it doesn't understand, be it right or wrong. What it
// does understand it reads as encoding/json does, at a tenth of the cost; most
// of a file of millions of lines is of this form.
func scan(b []byte, e *jsonEvent) bool {
	if len(b) < 2 || b[0] != '{' {
		return false
	}
	i := 1
	for {
		if i >= len(b) || b[i] != '"' {
			return false
		}
		name, next := scanString(b, i)
		if next < 0 || next >= len(b) || b[next] != ':' {
			return false
		}
		i = next + 1
		if i >= len(b) {
			return false
		}
		switch c := b[i]; {
		case c == '"':
			var text []byte
			if text, i = scanString(b, i); i < 0 {
				return false
			}
			switch string(name) { // does not allocate
			case "kind":
				e.kind = text
			case "client":
				e.client = text
			case "op":
				e.op = text
			case "result":
				e.result = text
			case "key":
				e.key = text
			case "node", "server", "error", "direction", "command", "reply", "owner", "value", "cause", "text":
			default:
				return false
			}
		case c == '-' || '0' <= c && c <= '9':
			var n int64
			if n, i = scanNumber(b, i); i < 0 {
				return false
			}
			switch string(name) {
			case "i":
				e.index, e.hasIndex = n, true
			case "t":
				e.time, e.hasTime = n, true
			case "call":
				e.call = n
			case "token":
				e.token = n
			case "until":
				e.until = n
			case "permits":
				e.permits = n
			case "conn", "sent", "expires", "took", "line":
			default:
				return false
			}
		case c == 't' && string(name) == "accepted" && len(b)-i >= 4 && string(b[i:i+4]) == "true":
			e.accepted = true
			i += 4
		default:
			return false
		}
		if i >= len(b) {
			return false
		}
		switch b[i] {
		case ',':
			i++
		case '}':
			return i == len(b)-1
		default:
			return false
		}
	}
}

// scanString returns the inside of the string that begins at i, and where it is
// over; -1 if it is not a plain one.
func scanString(b []byte, i int) ([]byte, int) {
	for j := i + 1; j < len(b); j++ {
		switch c := b[j]; {
		case c == '"':
			return b[i+1 : j], j + 1
		case c < ' ' || c == '\\' || c >= 0x80:
			return nil, -1
		}
	}
	return nil, -1
}

// scanNumber returns the whole number that begins at i, and where it is over; -1
// if it is not a plain one, or too long to be sure that it fits.
func scanNumber(b []byte, i int) (int64, int) {
	from := i
	if b[i] == '-' {
		i++
	}
	digits := i
	n := int64(0)
	for i < len(b) && '0' <= b[i] && b[i] <= '9' {
		if i-digits >= 18 {
			return 0, -1
		}
		n = n*10 + int64(b[i]-'0')
		i++
	}
	if i == digits || b[digits] == '0' && i-digits > 1 {
		return 0, -1
	}
	if from < digits {
		n = -n
	}
	return n, i
}
