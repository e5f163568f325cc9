package history

import (
	"bytes"
	"errors"
	"strconv"

	"github.com/lockfault/lockfault/internal/jsonscan"
)

// separators returns the characters that may separate the fields of CSV: a comma, and the
// characters that spreadsheets write where a comma is part of numbers.
func separators() []byte { return []byte{',', ';', '\t'} }

func separatorName(c byte) string {
	switch c {
	case ';':
		return "semicolon"
	case '\t':
		return "tab"
	}
	return "comma"
}

// separatorOf returns the separator of the first line. Names of columns contain no comma, semicolon
// or tab, so the first of these in the line is the separator. Lines with another separator then
// have too few fields and are refused.
func separatorOf(head []byte) byte {
	for _, c := range separators() {
		if bytes.IndexByte(head, c) >= 0 {
			return c
		}
	}
	return ','
}

// splitFields splits lines into fields as in RFC 4180, except that a field cannot contain a line
// break. Names of clients and locks do not need line breaks, and a missing quote then invalidates
// one line instead of the rest of the file.
type splitFields struct {
	list   [][]byte
	quoted []byte // contents of quoted fields, unescaped
}

// of returns the fields of a line, which are valid until the next call.
func (s *splitFields) of(line []byte, separator byte) ([][]byte, error) {
	s.list, s.quoted = s.list[:0], s.quoted[:0]
	if bytes.IndexByte(line, '"') < 0 {
		from := 0
		for i, c := range line {
			if c == separator {
				s.list = append(s.list, line[from:i])
				from = i + 1
			}
		}
		s.list = append(s.list, line[from:])
		return s.list, nil
	}
	for {
		field, rest, more, err := s.first(line, separator)
		if err != nil {
			return nil, err
		}
		s.list = append(s.list, field)
		if !more {
			return s.list, nil
		}
		line = rest
	}
}

// first returns the first field and the rest of the line, and reports whether another field
// follows.
func (s *splitFields) first(line []byte, separator byte) (field, rest []byte, more bool, err error) {
	if len(line) == 0 || line[0] != '"' {
		field, rest, more = bytes.Cut(line, []byte{separator})
		if bytes.IndexByte(field, '"') >= 0 {
			return nil, nil, false, errors.New("there is a \" inside a field that does not begin with one: put the field into quotes, and write each \" in it twice")
		}
		return field, rest, more, nil
	}
	line = line[1:]
	begin := len(s.quoted)
	for {
		end := bytes.IndexByte(line, '"')
		if end < 0 {
			return nil, nil, false, errors.New("a field begins with a \" and does not end with one")
		}
		s.quoted = append(s.quoted, line[:end]...)
		line = line[end+1:]
		switch {
		case len(line) == 0:
			return s.quoted[begin:], nil, false, nil
		case line[0] == separator:
			return s.quoted[begin:], line[1:], true, nil
		case line[0] != '"':
			return nil, nil, false, errors.New("a field goes on behind the \" that closes it: write a \" that is part of it twice")
		}
		s.quoted = append(s.quoted, '"')
		line = line[1:]
	}
}

// trim removes the spaces around a field.
func trim(field []byte) []byte {
	if n := len(field); n == 0 || plainByte(field[0]) && plainByte(field[n-1]) {
		return field
	}
	return bytes.TrimSpace(field)
}

// plainByte reports whether the byte is neither a space nor part of one.
func plainByte(c byte) bool { return c > ' ' && c < 0x80 }

// wholeNumber parses a whole number in decimal digits; false if the text is not a whole number or
// is out of range.
func wholeNumber(text []byte) (int64, bool) {
	if n, end := jsonscan.Number(text, 0); end == len(text) {
		return n, true
	}
	n, err := strconv.ParseInt(string(text), 10, 64) // leading zeros, 19 digits
	return n, err == nil
}
