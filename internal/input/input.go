// Package input opens the files that come from outside: each is a regular file of at most a known
// size. No other package of this module opens such files itself; a test of the package sees to that.
package input

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strconv"
)

// The largest size of each kind of input, in bytes.
const (
	// A Text is written by a person: a script, a file of expectations, a certificate.
	Text = 1 << 20
	// Costs are what bench writes.
	Costs = 16 << 20
	// A Document is read as a whole: findings.json, soak.json, map.json, what a test plays elsewhere.
	Document = 256 << 20
	// A Value is one value of results.json, such as a cell, or one line of a run's journal.
	Value = 64 << 20
	// A History is that of one cell.
	History = 1 << 30
	// A Stream is read a value at a time: results.json, and a run's journal.
	Stream = 8 << 30
	// A Checkpoint is that of a search. It is read a block at a time.
	Checkpoint = 64 << 30
	// A Program is an executable file.
	Program = 4 << 30
)

// Open opens a regular file that has at most so many bytes. It never waits: a pipe, a device or a
// directory is an error. The error names the file and the reason; a missing file's error is
// [fs.ErrNotExist].
func Open(path string, most int64) (*os.File, error) {
	return checked(path, most, func(flags int) (*os.File, error) { return os.OpenFile(path, flags, 0) })
}

// OpenIn is [Open] for a file below a directory.
func OpenIn(root *os.Root, path string, most int64) (*os.File, error) {
	return checked(path, most, func(flags int) (*os.File, error) { return root.OpenFile(path, flags, 0) })
}

func checked(path string, most int64, open func(flags int) (*os.File, error)) (*os.File, error) {
	f, err := open(os.O_RDONLY | withoutWaiting)
	if err != nil {
		return nil, err
	}
	if err := Check(f, path, most); err != nil {
		_ = f.Close()
		return nil, err
	}
	return f, nil
}

// Check returns an error unless an open file is a regular file of at most so many bytes. The error
// calls the file by the name.
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

// A TooLargeError says that an input has more bytes than it may have.
type TooLargeError struct {
	Size int64 // 0 if it is not known
	Most int64
}

func (e *TooLargeError) Error() string {
	if e.Size == 0 {
		return "more than the limit of " + size(e.Most)
	}
	return fmt.Sprintf("%d bytes, more than the limit of %s", e.Size, size(e.Most))
}

// size returns a number of bytes in words.
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

// Read returns the content of a regular file that has at most so many bytes. Its errors are those of
// [Open].
func Read(path string, most int64) ([]byte, error) {
	f, err := Open(path, most)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return ReadAll(f, path, most)
}

// ReadAll reads a stream to its end, which comes after at most so many bytes. The error calls the
// stream by the name.
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

// A Budget is a reader that ends with a [TooLargeError] after Most bytes, until [Budget.Renew] is
// called: it bounds each value of a stream of any length.
type Budget struct {
	R    io.Reader
	Most int64
	used int64
}

// Renew begins a value.
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
