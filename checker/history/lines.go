package history

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"unicode/utf8"
)

// lines splits the input into lines without their line ends, \n or \r\n, which may be mixed. Blank
// lines are omitted. lines does not check that the text is clean: parsers do, one of them without
// an extra pass.
type lines struct {
	in   *bufio.Reader
	line int // lines read so far
	long []byte
}

func newLines(in *bufio.Reader) *lines { return &lines{in: in} }

func (l *lines) next() ([]byte, int, error) {
	for {
		text, err := l.read()
		if err != nil {
			return nil, l.line, err
		}
		if n := len(text); n > 0 && text[n-1] == '\r' {
			text = text[:n-1]
		}
		if blank(text) {
			continue
		}
		return text, l.line, nil
	}
}

// read returns the next line without its \n.
func (l *lines) read() ([]byte, error) {
	text, err := l.in.ReadSlice('\n')
	if err == nil {
		l.line++
		return text[:len(text)-1], nil
	}
	l.long = l.long[:0]
	for size := 0; ; {
		size += len(text)
		if size <= maxLine+1 {
			l.long = append(l.long, text...)
		}
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
			text, err = l.in.ReadSlice('\n')
			continue
		case errors.Is(err, io.EOF) && size == 0:
			return nil, io.EOF
		case err != nil && !errors.Is(err, io.EOF):
			l.line++
			return nil, err
		}
		l.line++
		if err == nil {
			size-- // without the \n
		}
		if size > maxLine {
			return nil, badLine{fmt.Errorf("the line has %d bytes; %d are the most", size, maxLine)}
		}
		return bytes.TrimSuffix(l.long, []byte("\n")), nil
	}
}

func blank(text []byte) bool {
	for _, c := range text {
		if c != ' ' && c != '\t' && c != '\r' {
			return false
		}
	}
	return true
}

// clean returns an error for bytes that no text contains. Without this check, two names that differ
// only in invalid bytes could be confused.
func clean(text []byte) error {
	if bytes.IndexByte(text, 0) >= 0 {
		return errors.New("there is a NUL byte in it")
	}
	if !utf8.Valid(text) {
		return errors.New("it is not valid UTF-8")
	}
	return nil
}
