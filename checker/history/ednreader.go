package history

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
)

// maxDepth is the maximum nesting depth of EDN; the limit exists because the reader recurses.
const maxDepth = 64

// forms splits EDN into values: the top-level values or, if the first value is a vector or a list,
// the values inside it.
type forms struct {
	in     *bufio.Reader
	line   int // line of the next byte
	column int // column of the next byte, from 0
	begun  bool
	outer  byte // closing bracket of the outer vector, or 0
	closed bool // the outer vector is closed
	opened int  // line where the outer vector began
	form   []byte
	size   int
	// quick, if not nil, gets the rest of a line and returns the length of a complete and clean
	// value at its beginning, or 0.
	quick func([]byte) int
	left  int // number of following bytes that are certainly on this line
}

func newForms(in *bufio.Reader, quick func([]byte) int) *forms {
	return &forms{in: in, line: 1, quick: quick}
}

func (f *forms) next() ([]byte, int, error) {
	for {
		c, err := f.peek()
		switch {
		case errors.Is(err, io.EOF) && f.outer != 0 && !f.closed:
			return nil, f.line, fmt.Errorf("the vector that begins on line %d is not closed", f.opened)
		case err != nil:
			return nil, f.line, err
		case space(c):
			f.take()
		case c == ';':
			if err := f.comment(); err != nil {
				return nil, f.line, err
			}
		case f.closed:
			return nil, f.line, fmt.Errorf("there is more behind the vector that began on line %d", f.opened)
		case !f.begun && (c == '[' || c == '('):
			f.begun, f.outer, f.opened = true, c+2, f.line
			if c == '(' {
				f.outer = ')'
			}
			f.take()
		case f.outer != 0 && c == f.outer:
			f.closed = true
			f.take()
		case c == '}' || c == ']' || c == ')':
			line := f.line
			f.take()
			return nil, line, badLine{fmt.Errorf("there is a %c that closes nothing", c)}
		default:
			f.begun = true
			line := f.line
			if text := f.whole(); text != nil {
				return text, line, nil
			}
			if err := f.read(); err != nil {
				return nil, line, err
			}
			if f.size > maxLine {
				return nil, line, badLine{fmt.Errorf("the value has %d bytes; %d are the most", f.size, maxLine)}
			}
			if err := clean(f.form); err != nil {
				return nil, line, badLine{err}
			}
			return f.form, line, nil
		}
	}
}

// whole reads and returns a value that quick accepts; otherwise it reads nothing and returns nil.
// Most values are accepted, which avoids reading them one byte at a time.
func (f *forms) whole() []byte {
	if f.quick == nil {
		return nil
	}
	ahead, _ := f.in.Peek(f.in.Buffered())
	if f.left <= 0 {
		if f.left = bytes.IndexByte(ahead, '\n'); f.left < 0 {
			f.left = len(ahead)
		}
	}
	text := ahead[:min(f.left, len(ahead))]
	n := f.quick(text)
	if n == 0 {
		return nil
	}
	f.in.Discard(n) // cannot fail: the bytes were peeked at
	f.column += n
	f.left -= n
	return text[:n]
}

// read reads one value into form. After an error, read has still advanced to the beginning of the
// next value, so that a lenient reader can continue.
func (f *forms) read() error {
	f.form, f.size = f.form[:0], 0
	depth, deepest := 0, 0
	tags := 0 // number of tags that wait for their value
	for {
		c, err := f.peek()
		if errors.Is(err, io.EOF) {
			if depth > 0 || tags > 0 {
				return badLine{errors.New("it is not closed when the file ends")}
			}
			return tooDeep(deepest)
		}
		if err != nil {
			return err
		}
		switch {
		case depth > 0 && f.restarts(c):
			return badLine{errors.New("it is not closed when the next begins")}
		case c == '{' || c == '[' || c == '(':
			depth++
			deepest = max(deepest, depth)
			f.keep(f.take())
			continue
		case c == '}' || c == ']' || c == ')':
			if depth == 0 {
				if tags > 0 {
					return badLine{errors.New("there is a tag without a value")}
				}
				return tooDeep(deepest)
			}
			depth--
			f.keep(f.take())
		case c == '"':
			if err := f.text(); err != nil {
				return err
			}
		case c == ';':
			if err := f.comment(); err != nil {
				return err
			}
			continue
		case space(c):
			f.keep(f.take())
			continue
		default:
			if err := f.word(); err != nil {
				return err
			}
			if c == '#' {
				tags++
				deepest = max(deepest, depth+tags)
				continue
			}
		}
		tags = 0
		if depth == 0 {
			return tooDeep(deepest)
		}
	}
}

func tooDeep(depth int) error {
	if depth > maxDepth {
		return badLine{fmt.Errorf("it nests %d deep; %d is the most", depth, maxDepth)}
	}
	return nil
}

// restarts guesses whether the current value was never closed: a map that begins at the beginning
// of a line is taken for the next value.
func (f *forms) restarts(c byte) bool {
	if c != '{' || len(f.form) == 0 {
		return false
	}
	if f.outer != 0 {
		return f.column <= 1 && f.newLine()
	}
	return f.column == 0 && f.newLine()
}

// newLine reports whether only spaces precede on this line.
func (f *forms) newLine() bool {
	for i := len(f.form) - 1; i >= 0; i-- {
		switch f.form[i] {
		case '\n':
			return true
		case ' ', ',', '\r', '\t':
		default:
			return false
		}
	}
	return f.size > maxLine
}

// text reads a string.
func (f *forms) text() error {
	f.keep(f.take())
	for {
		c, err := f.peek()
		if errors.Is(err, io.EOF) {
			return badLine{errors.New("its text is not closed when the file ends")}
		}
		if err != nil {
			return err
		}
		if c == '{' && f.column == 0 {
			// Clojure prints a line break as \n, so a quote is missing here.
			return badLine{errors.New("its text is not closed when the next begins")}
		}
		f.keep(f.take())
		switch c {
		case '"':
			return nil
		case '\\':
			if _, err := f.peek(); err == nil {
				f.keep(f.take())
			}
		}
	}
}

// word reads a number, a symbol, a keyword, a character or a tag. The # of a set counts as a tag.
func (f *forms) word() error {
	begin := byte(0)
	for n := 0; ; n++ {
		c, err := f.peek()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if n == 0 {
			begin = c
		}
		if n > 0 && (space(c) || c == '{' || c == '[' || c == '(' || c == '}' || c == ']' || c == ')' || c == '"' || c == ';') {
			return nil
		}
		f.keep(f.take())
		if n == 1 && begin == '#' && c == '_' {
			return nil // #_ discards the next value, which may follow at once
		}
		if c == '\\' { // a character literal, which may be a bracket
			if _, err := f.peek(); err == nil {
				f.keep(f.take())
			}
		}
	}
}

func (f *forms) comment() error {
	for {
		c, err := f.peek()
		if errors.Is(err, io.EOF) || err == nil && c == '\n' {
			return nil
		}
		if err != nil {
			return err
		}
		f.take()
	}
}

func (f *forms) keep(c byte) {
	if f.size++; f.size <= maxLine {
		f.form = append(f.form, c)
	}
}

func (f *forms) peek() (byte, error) {
	head, err := f.in.Peek(1)
	if len(head) == 0 {
		return 0, err
	}
	return head[0], nil
}

// take reads the byte that peek returned.
func (f *forms) take() byte {
	c, _ := f.in.ReadByte() // cannot fail after peek
	f.column++
	f.left--
	if c == '\n' {
		f.line++
		f.column = 0
	}
	return c
}

func space(c byte) bool {
	return c == ' ' || c == ',' || c == '\n' || c == '\t' || c == '\r' || c == '\f' || c == '\v'
}
