package checkcmd

import (
	"bytes"
	"errors"
	"io"
)

const (
	// lookedAt is the number of bytes of a history from which the kind of lock is guessed.
	lookedAt = 256 << 10
	// remembered is the largest input in bytes that is buffered for a second reading if it cannot
	// be seeked.
	remembered = 16 << 20
)

// historyText is the text of a history that may be read twice.
type historyText struct {
	head     []byte // the first lookedAt bytes
	whole    io.Reader
	file     io.ReadSeeker // nil if the input can be read only once
	start    int64         // offset of the history in file
	buffered bytes.Buffer
	over     bool // the input exceeded remembered, so buffered was dropped
}

// newHistoryText reads the first lookedAt bytes of r. A read error is returned by the reader whole,
// not here.
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

// Write buffers p for a second reading. After more than remembered bytes it drops the buffer.
func (in *historyText) Write(p []byte) (int, error) {
	if in.over || in.buffered.Len()+len(p) > remembered {
		in.over = true
		in.buffered = bytes.Buffer{}
		return len(p), nil
	}
	return in.buffered.Write(p)
}

// reopen returns a reader of the text from its beginning, or nil if the text cannot be read again.
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
