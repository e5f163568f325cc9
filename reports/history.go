package reports

import (
	"bufio"
	"errors"
	"fmt"
	"io"

	"io/fs"
	"os"
	"path/filepath"

	"github.com/lockfault/lockfault/checker"
	"github.com/lockfault/lockfault/internal/atomicdir"
	"github.com/lockfault/lockfault/internal/below"
	"github.com/lockfault/lockfault/internal/input"
)

// WriteHistory writes a history to a file of that name below a directory; the name has slashes.
// The file never holds half of a history. WriteHistory makes missing directories, but not those
// above dir, and follows no symbolic link below dir.
func WriteHistory(dir, name string, h checker.History) error {
	if err := writeHistory(dir, filepath.FromSlash(name), h); err != nil {
		return fmt.Errorf("reports: write a history: %w", err)
	}
	return nil
}

func writeHistory(dir, name string, h checker.History) error {
	if err := os.Mkdir(dir, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	in, err := below.Open(dir)
	if err != nil {
		return err
	}
	defer in.Close()
	if err := in.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		return err
	}
	return atomicdir.InUnsynced(in, name, func(w io.Writer) error { return checker.Encode(w, h) })
}

// errNotIts says that a cell's history is another one's.
var errNotIts = errors.New("its history is another one's")

// historyIn reads the history of a cell below a report's directory, and sees that it is the
// cell's. The error is errNotIts if it is not, and [fs.ErrNotExist] if there is none.
func (c Cell) historyIn(dir string) (checker.History, error) {
	h, err := ReadHistory(dir, c.History)
	if m := h.Meta; err == nil && (m.World != c.World || m.Strategy != c.Strategy || m.Scenario != c.Scenario) {
		err = fmt.Errorf("reports: %s under %s in %s: %w: that of %s under %s in %s", shown(c.Strategy), shown(c.Scenario), shown(c.World),
			errNotIts, shown(m.Strategy), shown(m.Scenario), shown(m.World))
	}
	return h, err
}

// ReadHistory reads the history in a file of that name below a directory; the name has slashes. A
// name that leads out of the directory is an error, and so is a symbolic link that does.
func ReadHistory(dir, name string) (checker.History, error) {
	path := filepath.Join(dir, filepath.FromSlash(name))
	f, err := openBelow(dir, name, input.History)
	if err != nil {
		return checker.History{}, fmt.Errorf("reports: read a history: %w", err)
	}
	defer f.Close()
	h, err := checker.Decode(bufio.NewReader(f))
	if err != nil {
		return checker.History{}, fmt.Errorf("reports: read the history %s: %w", path, err)
	}
	return h, nil
}

// openBelow opens a file below a directory for reading; the name has slashes.
func openBelow(dir, name string, most int64) (*os.File, error) {
	in, err := below.Open(dir)
	if err != nil {
		return nil, err
	}
	defer in.Close()
	return in.Read(filepath.FromSlash(name), most)
}

// openBeside opens a file for reading that lies in its directory: not one that a symbolic link
// there leads to elsewhere.
func openBeside(path string, most int64) (*os.File, error) {
	return openBelow(filepath.Dir(path), filepath.Base(path), most)
}
