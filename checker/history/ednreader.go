package history

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
)

// maxDepth is how deep EDN may nest, since its reader recurses.
const maxDepth = 64

// forms splits EDN into its values: those at the top, or, if the first is a
// vector or a list, those inside it.
type forms struct {
	in     *bufio.Reader
	line   int // of the byte that comes next
	column int // of the same, from 0
	begun  bool
	outer  byte // what closes the vector around all, or 0
	closed bool // it was closed
	opened int  // the line where it began
	form   []byte
	size   int
	// quick, unless it is nil, is shown what is left of a line. If a value
	// that it knows begins there, a clean one, it returns its length, else 0.
	quick func([]byte) int
	left  int // how many bytes ahead are on this line for sure
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

// whole reads a value that quick knows, if one begins and ends here, and returns
// it; otherwise it reads nothing and returns nil. Most values are such, and need
// not be read one byte at a time.
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
	f.in.Discard(n) // it was peeked at, so it is there
	f.column += n
	f.left -= n
	return text[:n]
}

// read reads one value into form. If it goes wrong, it still reads to where the
// next begins, so that a lenient reader can go on.
func (f *forms) read() error {
	f.form, f.size = f.form[:0], 0
	depth, deepest := 0, 0
	tags := 0 // how many tags wait for their value
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

// restarts guesses that the value before was never closed: maps begin where a
// line does.
func (f *forms) restarts(c byte) bool {
	if c != '{' || len(f.form) == 0 {
		return false
	}
	if f.outer != 0 {
		return f.column <= 1 && f.newLine()
	}
	return f.column == 0 && f.newLine()
}

// newLine reports whether the value began on a line before this one.
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
			// Clojure prints the end of a line as \n, so this is a quote
			// that is missing.
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

// word reads a number, a symbol, a keyword, a character or a tag, of which the #
// of a set is one.
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
			return nil // it hides the value behind it, which may follow at once
		}
		if c == '\\' { // a character, which may be a bracket
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

// take reads the byte that was peeked at.
func (f *forms) take() byte {
	c, _ := f.in.ReadByte() // peek had it
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
