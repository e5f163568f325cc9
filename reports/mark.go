package reports

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/lockfault/lockfault/internal/below"
)

// The mark is a file in [WorkDir] that identifies the directory as lockfault's own: a run removes
// everything in it. Since a user may have a directory of that name, a directory without the mark is
// refused.
const (
	markName = "README"
	markText = "lockfault keeps an unfinished run here, and removes this directory with all that is in it.\n"
)

// checkWork reports whether the working directory exists. checkWork returns an error if the
// directory may belong to the user. checkWork changes nothing.
//
// A run makes the journal, empty, then the mark, then everything else. A complete run empties the
// journal and removes everything else, then the mark, then the journal. If a run is killed at any
// moment, the directory therefore has either a whole mark, or only an empty journal and a part of
// the mark.
func checkWork(out *below.Dir) (used bool, err error) {
	for {
		info, err := out.Lstat(WorkDir)
		if errors.Is(err, fs.ErrNotExist) {
			return false, nil
		}
		if err != nil {
			return false, err
		}
		is := false
		if info.IsDir() {
			is, err = isWork(out)
		}
		switch {
		case errors.Is(err, fs.ErrNotExist): // another run has just ended and removed it
			continue
		case err != nil:
			return false, err
		case !is:
			return false, fmt.Errorf("%s there is not of lockfault's making: move it away, or name another directory", WorkDir)
		}
		return true, nil
	}
}

// isWork reports whether a working directory is lockfault's own.
func isWork(out *below.Dir) (bool, error) {
	entries, err := out.ReadDir(WorkDir)
	if err != nil {
		return false, err
	}
	harmless := true
	for _, entry := range entries {
		info, err := entry.Info()
		if err != nil {
			return false, err
		}
		switch entry.Name() {
		case markName:
			text, err := readMark(out)
			if err != nil && errors.Is(err, fs.ErrNotExist) {
				return false, err
			}
			if err == nil && text == markText {
				return true, nil
			}
			harmless = harmless && err == nil && strings.HasPrefix(markText, text)
		case journalName:
			harmless = harmless && info.Mode().IsRegular() && info.Size() == 0
		default:
			harmless = false
		}
	}
	return harmless, nil
}

// readMark reads the mark. If the file is longer than the mark, readMark reads one byte too many,
// so that the text differs.
func readMark(out *below.Dir) (string, error) {
	f, err := out.Open(filepath.Join(WorkDir, markName), os.O_RDONLY)
	if err != nil {
		return "", err
	}
	defer f.Close()
	text := make([]byte, len(markText)+1)
	n, err := io.ReadFull(f, text)
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		err = nil
	}
	return string(text[:n]), err
}

// mark writes the mark. The caller must hold the journal's lock.
func mark(out *below.Dir) error {
	name := filepath.Join(WorkDir, markName)
	switch text, err := readMark(out); {
	case err == nil && text == markText:
		return nil
	case err == nil: // a killed run has left a partial mark
		err = out.Remove(name)
		if err != nil {
			return err
		}
	case !errors.Is(err, fs.ErrNotExist):
		return err
	}
	f, err := out.Create(name, 0o644)
	if err != nil {
		return err
	}
	_, err = f.WriteString(markText)
	return errors.Join(err, f.Close())
}
