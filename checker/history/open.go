package history

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode"
)

const (
	// maxLine is the maximum length of a line, or of an EDN value, in bytes. The limit bounds the
	// memory; real operations need less than a thousandth of it.
	maxLine = 1 << 20
	// sniffed is the number of bytes used to detect the format.
	sniffed = 4096
	// buffered is the size of the read buffer in bytes.
	buffered = 1 << 18
)

// open decompresses the input, detects its format if necessary, and returns its splitter and
// parser, or an error and its line.
func (r *Reader) open() (splitter, parser, int, error) {
	in := bufio.NewReaderSize(&sticky{in: r.input}, buffered)
	head, _ := in.Peek(2) // the next read returns the error
	if bytes.HasPrefix(head, []byte{0x1f, 0x8b}) {
		unpacked, err := gzip.NewReader(in)
		if err != nil {
			return nil, nil, 1, fmt.Errorf("the gzip data is damaged: %w", reason(err))
		}
		in = bufio.NewReaderSize(&sticky{in: gzipReader{unpacked}}, buffered)
	}
	head, err := in.Peek(sniffed)
	if err != nil && !errors.Is(err, io.EOF) && len(head) == 0 {
		return nil, nil, 1, err
	}
	switch {
	case bytes.HasPrefix(head, []byte("\xff\xfe")), bytes.HasPrefix(head, []byte("\xfe\xff")):
		return nil, nil, 1, errors.New("the text is UTF-16: convert it to UTF-8")
	case bytes.HasPrefix(head, []byte("\xef\xbb\xbf")):
		in.Discard(3) // cannot fail: the bytes were peeked at
		head = head[3:]
	}
	if len(bytes.TrimSpace(head)) == 0 && errors.Is(err, io.EOF) {
		return nil, nil, 1, errors.New("the history is empty")
	}
	if r.options.Format == Auto {
		if r.options.Format = sniff(head); r.options.Format == Auto && err != nil && !errors.Is(err, io.EOF) {
			return nil, nil, 1, err
		}
		if r.options.Format == Auto {
			return nil, nil, 1, errors.New("this looks like none of JSON lines, EDN and CSV: name the format")
		}
	}
	if r.options.TimeUnit != AutoUnit && r.options.Format != CSV {
		return nil, nil, 1, fmt.Errorf("times of %s are nanoseconds: only those of CSV may be of another unit, so ask for none", r.options.Format)
	}
	switch r.options.Format {
	case JSONLines:
		return newLines(in), newJSONLines(r.options.ByServer), 1, nil
	case EDN:
		p := newJepsen()
		return newForms(in, p.scan), p, 1, nil
	case CSV:
		lines := newLines(in)
		table, err := newTable(lines, r.options.TimeUnit)
		return lines, table, lines.line, err
	}
	return nil, nil, 1, fmt.Errorf("there is no format %q", r.options.Format)
}

// sniff returns the format of a text by its beginning; Auto if the format is unknown.
func sniff(head []byte) Format {
	text := bytes.TrimLeftFunc(head, unicode.IsSpace)
	if len(text) == 0 {
		return Auto
	}
	switch text[0] {
	case '{':
		if inner := bytes.TrimLeftFunc(text[1:], unicode.IsSpace); len(inner) > 0 && (inner[0] == '"' || inner[0] == '}') {
			return JSONLines
		}
		return EDN
	case '[', '(', ';', '#':
		return EDN
	}
	first, _, _ := bytes.Cut(text, []byte("\n"))
	between := func(c rune) bool { return c == ',' || c == ';' || c == '\t' }
	for name := range strings.FieldsFuncSeq(string(first), between) {
		if strings.EqualFold(strings.Trim(strings.TrimSpace(name), `"`), "time") {
			return CSV
		}
	}
	return Auto
}

// sticky is a reader that repeats its first error. Peeking must not consume an error.
type sticky struct {
	in  io.Reader
	err error
}

func (s *sticky) Read(p []byte) (int, error) {
	if s.err != nil {
		return 0, s.err
	}
	n, err := s.in.Read(p)
	s.err = err
	return n, err
}

// gzipReader replaces the errors of a gzip.Reader by readable ones.
type gzipReader struct{ in *gzip.Reader }

func (g gzipReader) Read(p []byte) (int, error) {
	n, err := g.in.Read(p)
	switch {
	case err == nil || errors.Is(err, io.EOF):
	case errors.Is(err, io.ErrUnexpectedEOF):
		err = errors.New("the gzip data ends too soon")
	case errors.Is(err, gzip.ErrChecksum):
		err = errors.New("the gzip data is damaged: its checksum is wrong")
	default:
		err = fmt.Errorf("the gzip data is damaged: %w", reason(err))
	}
	return n, err
}

// reason returns the error without the name of the library, which does not help users.
func reason(err error) error {
	text := err.Error()
	for _, prefix := range []string{"gzip: ", "flate: ", "json: ", "edn: "} {
		text = strings.TrimPrefix(text, prefix)
	}
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		text = "it ends too soon"
	}
	return errors.New(text)
}
