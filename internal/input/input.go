// Package input opens files from outside: each must be a regular file of at most a known size. No
// other package of this module opens such files itself; a test of the package checks this rule.
package input

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strconv"
)

// Maximum sizes of the kinds of input, in bytes.
const (
	// Text is a file written by a person: a script, a file of expectations, a certificate.
	Text = 1 << 20
	// Costs is the output of bench.
	Costs = 16 << 20
	// Document is a file that is read as a whole: findings.json, soak.json, map.json, the answers
	// of a separate test process.
	Document = 256 << 20
	// Value is one value of results.json, such as a cell, or one line of a run's journal.
	Value = 64 << 20
	// History is the history of one cell.
	History = 1 << 30
	// Stream is a file that is read one value at a time: results.json, or a run's journal.
	Stream = 8 << 30
	// Checkpoint is the checkpoint of a search, which is read one block at a time.
	Checkpoint = 64 << 30
	// Program is an executable file.
	Program = 4 << 30
)

// Open opens a regular file of at most the given number of bytes. Open never blocks: a pipe, a
// device or a directory is an error. The error names the file and the reason; for a missing file
// the error is [fs.ErrNotExist].
func Open(path string, most int64) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|withoutWaiting, 0)
	if err != nil {
		return nil, err
	}
	if err := Check(f, path, most); err != nil {
		_ = f.Close()
		return nil, err
	}
	return f, nil
}

// Check returns an error unless an open file is a regular file of at most the given number of
// bytes. The error refers to the file by the given name.
func Check(f *os.File, name string, most int64) error {
	info, err := f.Stat()
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() {
		return &fs.PathError{Op: "read", Path: name, Err: errors.New("not a regular file")}
	}
	if info.Size() > most {
		return &fs.PathError{Op: "read", Path: name, Err: &TooLargeError{info.Size(), most}}
	}
	return nil
}

// TooLargeError reports that an input exceeds its maximum size.
type TooLargeError struct {
	Size int64 // 0 if unknown
	Most int64
}

func (e *TooLargeError) Error() string {
	if e.Size == 0 {
		return "more than the limit of " + size(e.Most)
	}
	return fmt.Sprintf("%d bytes, more than the limit of %s", e.Size, size(e.Most))
}

// size returns a number of bytes as text, with the largest unit that divides it.
func size(n int64) string {
	for _, unit := range []struct {
		shift int
		name  string
	}{{30, "GiB"}, {20, "MiB"}, {10, "KiB"}} {
		if n >= 1<<unit.shift && n%(1<<unit.shift) == 0 {
			return fmt.Sprintf("%d %s", n>>unit.shift, unit.name)
		}
	}
	return strconv.FormatInt(n, 10) + " bytes"
}

// Read returns the contents of a regular file of at most the given number of bytes. Its errors are
// those of [Open].
func Read(path string, most int64) ([]byte, error) {
	f, err := Open(path, most)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return ReadAll(f, path, most)
}

// ReadAll reads a stream to its end. A stream of more than the given number of bytes is an error,
// which refers to the stream by the given name.
func ReadAll(r io.Reader, name string, most int64) ([]byte, error) {
	text, err := io.ReadAll(io.LimitReader(r, most+1))
	if err == nil && int64(len(text)) > most {
		err = &fs.PathError{Op: "read", Path: name, Err: &TooLargeError{0, most}}
	}
	if err != nil {
		return nil, err
	}
	return text, nil
}

// Budget is a reader that returns a [TooLargeError] after Most bytes, unless [Budget.Renew] is
// called before. A Budget limits each value of a stream of any length.
type Budget struct {
	R    io.Reader
	Most int64
	used int64
}

// Renew starts the budget of the next value.
func (b *Budget) Renew() { b.used = 0 }

// Read implements [io.Reader].
func (b *Budget) Read(p []byte) (int, error) {
	if b.used >= b.Most {
		return 0, &TooLargeError{0, b.Most}
	}
	n, err := b.R.Read(p[:min(int64(len(p)), b.Most-b.used)])
	b.used += int64(n)
	return n, err
}
