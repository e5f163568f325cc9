// Package resp reads as much of the Redis protocol (RESP2 and RESP3) as a gate
// needs: where a message ends, what a request asks, and how a reply reads on
// one line. It keeps nothing between calls and imports only the standard
// library.
//
// The protocol: https://redis.io/docs/latest/develop/reference/protocol-spec/
package resp

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// MaxDepth is how deep replies may nest.
const MaxDepth = 32

// maxBulk is the longest bulk string that Redis accepts.
const maxBulk = 512 << 20

// maxCount is the longest array that is taken for one: no lock needs more, and
// twice as much is still a number.
const maxCount = 1 << 20

// null is the length of what doesn't exist.
const null = -1

// minWord is how many bytes the shortest word of a request takes: $0, and two
// line ends.
const minWord = 6

// ErrProtocol says that the bytes are not RESP. Errors of this package wrap it.
var ErrProtocol = errors.New("resp: protocol error")

// Command reads the first request in b: an array of bulk strings, or an inline
// command. It returns the words and how many bytes they took, which is 0 while
// the request is incomplete.
func Command(b []byte) (words []string, n int, err error) {
	if len(b) == 0 {
		return nil, 0, nil
	}
	if b[0] != '*' {
		line, n := cutLine(b)
		if n == 0 {
			return nil, 0, nil
		}
		return strings.Fields(string(line)), n, nil
	}
	count, n, err := readCount(b)
	if n == 0 || err != nil {
		return nil, 0, err
	}
	if count > maxCount {
		return nil, 0, fmt.Errorf("%w: a request of %d words", ErrProtocol, count)
	}
	words = make([]string, 0, max(0, min(count, len(b)/minWord))) // a count is only a claim
	for range count {                                             // none for *-1, which Redis ignores as it does *0
		if n == len(b) {
			return nil, 0, nil
		}
		if b[n] != '$' {
			return nil, 0, fmt.Errorf("%w: %q where a request's word should begin", ErrProtocol, b[n])
		}
		size, used, err := readCount(b[n:])
		if used == 0 || err != nil {
			return nil, 0, err
		}
		if size < 0 || size > maxBulk {
			return nil, 0, fmt.Errorf("%w: a word of %d bytes", ErrProtocol, size)
		}
		n += used
		if len(b) < n+size+2 {
			return nil, 0, nil
		}
		words = append(words, string(b[n:n+size]))
		n += size + 2
	}
	return words, n, nil
}

// Frame returns how many bytes the first value in b takes, 0 while it is
// incomplete.
func Frame(b []byte) (n int, err error) { return frame(b, 0) }

func frame(b []byte, depth int) (int, error) {
	if depth > MaxDepth {
		return 0, fmt.Errorf("%w: nested deeper than %d", ErrProtocol, MaxDepth)
	}
	if len(b) == 0 {
		return 0, nil
	}
	switch b[0] {
	case '+', '-', ':', '_', ',', '#', '(':
		_, n := cutLine(b)
		return n, nil
	case '$', '!', '=':
		size, n, err := readCount(b)
		if n == 0 || err != nil || size == null {
			return n, err
		}
		if size < 0 {
			return 0, fmt.Errorf("%w: a string of %d bytes", ErrProtocol, size)
		}
		if size > maxBulk {
			return 0, fmt.Errorf("%w: a string of %d bytes", ErrProtocol, size)
		}
		if len(b) < n+size+2 {
			return 0, nil
		}
		return n + size + 2, nil
	case '*', '>', '~', '%', '|':
		count, n, err := readCount(b)
		if n == 0 || err != nil || count == null {
			return n, err
		}
		if count < 0 || count > maxCount {
			return 0, fmt.Errorf("%w: an array of %d values", ErrProtocol, count)
		}
		if b[0] == '%' || b[0] == '|' {
			count *= 2
		}
		if b[0] == '|' {
			count++ // an attribute stands before the value that it is about
		}
		for range count {
			used, err := frame(b[n:], depth+1)
			if used == 0 || err != nil {
				return 0, err
			}
			n += used
		}
		return n, nil
	}
	return 0, fmt.Errorf("%w: no value begins with %q", ErrProtocol, b[0])
}

// IsPush reports whether the value in b is a message of a subscription, or one that
// cached keys have changed, rather than the answer to a request. In RESP2 only its first word tells.
func IsPush(b []byte) bool {
	if len(b) == 0 {
		return false
	}
	if b[0] == '>' {
		_, n := cutLine(b)
		head, used := cutLine(b[n:])
		kind, _ := cutLine(b[n+used:])
		return bytes.HasPrefix(head, []byte("$")) && !bytes.HasSuffix(kind, []byte("subscribe"))
	}
	for _, head := range [...]string{"*3\r\n$7\r\nmessage\r\n", "*4\r\n$8\r\npmessage\r\n", "*3\r\n$8\r\nsmessage\r\n"} {
		if bytes.HasPrefix(b, []byte(head)) {
			return true
		}
	}
	return false
}

// Print returns the first value in b on one line, as redis-cli would show it.
// Each string passes through rename first, if it isn't nil.
func Print(b []byte, rename func(string) string) string {
	var out strings.Builder
	if _, err := show(&out, b, rename, 0); err != nil {
		return "?"
	}
	return out.String()
}

// Words returns the strings and numbers in the first value in b, in their order, of
// arrays inside it too; none for an error, and for what doesn't exist.
func Words(b []byte) (words []string) {
	_ = walk(b, 0, func(word string) { words = append(words, word) })
	return words
}

func walk(b []byte, depth int, each func(word string)) error {
	n, err := frame(b, depth)
	if n == 0 || err != nil {
		return err
	}
	line, head := cutLine(b)
	switch b[0] {
	case '-', '!', '_', '|':
	case '$', '=':
		if n > head {
			each(string(b[head : n-2]))
		}
	case '*', '~', '>', '%':
		for at := head; at < n; {
			used, err := frame(b[at:], depth+1)
			if err != nil {
				return err
			}
			if err := walk(b[at:], depth+1, each); err != nil {
				return err
			}
			at += used
		}
	default:
		each(string(line[1:]))
	}
	return nil
}

func show(out *strings.Builder, b []byte, rename func(string) string, depth int) (int, error) {
	n, err := frame(b, depth)
	if n == 0 && err == nil {
		err = fmt.Errorf("%w: incomplete", ErrProtocol)
	}
	if err != nil {
		return 0, err
	}
	line, head := cutLine(b)
	text := string(line[1:])
	switch b[0] {
	case '+':
		out.WriteString(text)
	case '-':
		out.WriteString("(error) " + text)
	case ':':
		out.WriteString("(integer) " + text)
	case '_':
		out.WriteString("(nil)")
	case '#':
		out.WriteString(map[string]string{"t": "(true)", "f": "(false)"}[text])
	case ',', '(':
		out.WriteString(text)
	case '$', '!', '=':
		if n == head {
			out.WriteString("(nil)")
			break
		}
		value := string(b[head : n-2])
		if b[0] == '!' {
			out.WriteString("(error) " + value)
			break
		}
		if b[0] == '=' && len(value) > len("txt:") {
			value = value[len("txt:"):] // how to show it; here there is one way only
		}
		if rename != nil {
			value = rename(value)
		}
		out.WriteString(strconv.Quote(value))
	default:
		if count, _, _ := readCount(b); count == null {
			out.WriteString("(nil)")
			break
		}
		out.WriteByte('[')
		for at := head; at < n; {
			if at > head {
				out.WriteByte(' ')
			}
			used, err := show(out, b[at:], rename, depth+1)
			if err != nil {
				return 0, err
			}
			at += used
		}
		out.WriteByte(']')
	}
	return n, nil
}

// cutLine returns the line that b begins with and the bytes it took with its
// line end, 0 if there is no line end yet.
func cutLine(b []byte) (line []byte, n int) {
	end := bytes.IndexByte(b, '\n')
	if end < 0 {
		return nil, 0
	}
	return bytes.TrimSuffix(b[:end], []byte("\r")), end + 1
}

// readCount reads the count behind the type byte of b.
func readCount(b []byte) (value, n int, err error) {
	line, n := cutLine(b)
	if n == 0 {
		return 0, 0, nil
	}
	value, err = strconv.Atoi(string(line[1:]))
	if err != nil {
		return 0, 0, fmt.Errorf("%w: %q is no length", ErrProtocol, line[1:])
	}
	return value, n, nil
}
