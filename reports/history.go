package reports

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"path/filepath"

	"github.com/lockfault/lockfault/checker"
	"github.com/lockfault/lockfault/internal/input"
)

// WriteHistory writes a history to a file of that name, which never holds
// half of one. It makes missing directories.
func WriteHistory(path string, h checker.History) error {
	err := writeFile(path, func(w io.Writer) error { return checker.Encode(w, h) })
	if err != nil {
		return fmt.Errorf("reports: write a history: %w", err)
	}
	return nil
}

// errNotIts says that a cell's history is another one's.
var errNotIts = errors.New("its history is another one's")

// historyIn reads the history of a cell below a report's directory, and sees that it is the
// cell's. The error is errNotIts if it is not, and [fs.ErrNotExist] if there is none.
func (c Cell) historyIn(dir string) (checker.History, error) {
	h, err := ReadHistory(filepath.Join(dir, filepath.FromSlash(c.History)))
	if m := h.Meta; err == nil && (m.World != c.World || m.Strategy != c.Strategy || m.Scenario != c.Scenario) {
		err = fmt.Errorf("reports: %s under %s in %s: %w: that of %s under %s in %s", shown(c.Strategy), shown(c.Scenario), shown(c.World),
			errNotIts, shown(m.Strategy), shown(m.Scenario), shown(m.World))
	}
	return h, err
}

// ReadHistory reads the history in a file.
func ReadHistory(path string) (checker.History, error) {
	f, err := input.Open(path, input.History)
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
