package kit

import (
	"io"
	"path/filepath"

	"github.com/lockfault/lockfault/internal/atomicdir"
	"github.com/lockfault/lockfault/internal/below"
	"github.com/lockfault/lockfault/internal/input"
)

// The functions of this file work on files in the directory of --out. They do not follow symbolic
// links below it, because the directory may be part of another person's repository.

// MakeOut creates the directory and returns an error if a file in it could not be written.
func MakeOut(dir string, files ...string) error {
	in, err := below.Make(dir, 0o777)
	if err != nil {
		return err
	}
	defer in.Close()
	for _, name := range files {
		if err := atomicdir.CheckIn(in, name); err != nil {
			return err
		}
	}
	return nil
}

// WriteOut writes a file atomically, replacing it if it exists.
func WriteOut(dir, name string, text []byte) error {
	in, err := below.Open(dir)
	if err != nil {
		return err
	}
	defer in.Close()
	return atomicdir.In(in, name, func(w io.Writer) error {
		_, err := w.Write(text)
		return err
	})
}

// ReadOut reads a file of at most most bytes.
func ReadOut(dir, name string, most int64) ([]byte, error) {
	in, err := below.Open(dir)
	if err != nil {
		return nil, err
	}
	defer in.Close()
	f, err := in.Read(name, most)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return input.ReadAll(f, filepath.Join(dir, name), most)
}

// RemoveOut removes a file if it exists. RemoveOut ignores errors.
func RemoveOut(dir, name string) {
	in, err := below.Open(dir)
	if err != nil {
		return
	}
	defer in.Close()
	_ = in.Remove(name)
}
