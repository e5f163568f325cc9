package reports

import (
	"bufio"
	"fmt"
	"io"
	"os"

	"github.com/lockfault/lockfault/checker"
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

// ReadHistory reads the history in a file.
func ReadHistory(path string) (checker.History, error) {
	f, err := os.Open(path)
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
