package reports

import (
	"fmt"
	"io"

	"github.com/lockfault/lockfault/internal/input"
	"github.com/lockfault/lockfault/internal/printable"
)

var formatJSON = Format{Name: "json", Write: results}

// results copies the results file. Characters that act on a terminal are escaped, so that each
// string keeps its value.
func results(w io.Writer, of Source) error {
	f, err := openBeside(of.Results, input.Stream)
	if err != nil {
		return fmt.Errorf("reports: %w", err)
	}
	defer f.Close()
	_, err = io.Copy(printable.NewJSONWriter(w), f)
	return err
}
