package cli

import (
	"io"
	"path/filepath"

	"github.com/lockfault/lockfault/internal/atomicdir"
	"github.com/lockfault/lockfault/internal/below"
	"github.com/lockfault/lockfault/internal/input"
)

// The functions here work on files of a directory that --out names. The directory may be in a
// repository of somebody else's, so no symbolic link below it is followed.

// makeOut makes the directory, and returns an error if one of the files can't be written there.
func makeOut(dir string, files ...string) error {
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

// writeOut replaces a file, or makes it.
func writeOut(dir, name string, text []byte) error {
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

// readOut reads a file.
func readOut(dir, name string, most int64) ([]byte, error) {
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

// removeOut removes a file, which may be missing. What can't be removed stays.
func removeOut(dir, name string) {
	in, err := below.Open(dir)
	if err != nil {
		return
	}
	defer in.Close()
	_ = in.Remove(name)
}
