package cli

import (
	"bytes"
	"errors"
	"io"
)

const (
	// lookedAt is how much of a history tells what kind of lock it is about.
	lookedAt = 256 << 10
	// remembered is how much of an input that can be read only once is kept
	// for a second reading.
	remembered = 16 << 20
)

// A historyText is a history's text, which may be wanted twice.
type historyText struct {
	head     []byte // its beginning
	whole    io.Reader
	file     io.ReadSeeker // nil if it can be read only once
	start    int64         // where it begins in file
	buffered bytes.Buffer
	over     bool // there was more than is kept
}

// newHistoryText reads the beginning of a history. An error comes back when that is
// read through.
func newHistoryText(r io.Reader) *historyText {
	in := &historyText{}
	if file, ok := r.(io.ReadSeeker); ok {
		if start, err := file.Seek(0, io.SeekCurrent); err == nil {
			in.file, in.start = file, start
		}
	}
	in.head = make([]byte, lookedAt)
	n, err := io.ReadFull(r, in.head)
	in.head = in.head[:n]
	switch {
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		r = bytes.NewReader(nil)
	case err != nil:
		r = failed{err}
	}
	in.whole = io.MultiReader(bytes.NewReader(in.head), r)
	if in.file == nil {
		in.whole = io.TeeReader(in.whole, in)
	}
	return in
}

type failed struct{ err error }

func (f failed) Read([]byte) (int, error) { return 0, f.err }

// Write keeps what has been read, as long as it is not too much.
func (in *historyText) Write(p []byte) (int, error) {
	if in.over || in.buffered.Len()+len(p) > remembered {
		in.over = true
		in.buffered = bytes.Buffer{}
		return len(p), nil
	}
	return in.buffered.Write(p)
}

// flagArgs returns the text from its beginning, once more, or nil if it is gone.
func (in *historyText) reopen() io.Reader {
	if in.file == nil {
		if in.over {
			return nil
		}
		return &in.buffered
	}
	if _, err := in.file.Seek(in.start, io.SeekStart); err != nil {
		return nil
	}
	return in.file
}
