package reports

import (
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"

	"github.com/lockfault/lockfault/checker"
	"github.com/lockfault/lockfault/internal/printable"
	"github.com/lockfault/lockfault/reports/diagram"
	"github.com/lockfault/lockfault/reports/mermaid"
	"github.com/lockfault/lockfault/reports/perfetto"
	"github.com/lockfault/lockfault/reports/svg"
)

// DrawCell writes the picture of a cell in one of the [Formats]. The report is in dir. If world is
// empty, DrawCell takes the first world with the cell. The error is [ErrNoCell] if the report has
// no such cell.
func DrawCell(w io.Writer, dir, strategy, scenario, world, format string) error {
	i := slices.Index(Formats(), format)
	if i < 0 {
		return fmt.Errorf("reports: there is no format %q: there are %s", format, strings.Join(Formats(), ", "))
	}
	found := false
	_, err := Scan(filepath.Join(dir, ResultsFile), func(c Cell) error {
		if found || c.Strategy != strategy || c.Scenario != scenario || world != "" && c.World != world {
			return nil
		}
		found = true
		var h checker.History
		if c.History != "" {
			var err error
			if h, err = c.historyIn(dir); err != nil {
				return err
			}
		}
		return drawings()[i].write(w, c, h)
	})
	if err == nil && !found {
		err = fmt.Errorf("%w: %s under %s", ErrNoCell, strategy, scenario)
	}
	return err
}

// ErrNoCell reports that a report has no such cell.
var ErrNoCell = errors.New("reports: the report has no such cell")

// A drawing is a format for the picture of a cell.
type drawing struct {
	name  string
	write func(w io.Writer, c Cell, h checker.History) error
}

// drawings returns the formats for the picture of a cell. The first one is the default.
func drawings() []drawing {
	picture := func(draw func(io.Writer, diagram.Picture) error) func(io.Writer, Cell, checker.History) error {
		return func(w io.Writer, c Cell, h checker.History) error {
			return draw(printable.NewWriter(w), Picture(c, h, MostMoments))
		}
	}
	return []drawing{
		{"svg", picture(func(w io.Writer, p diagram.Picture) error { return svg.Timeline(w, p, true) })},
		{"sequence", picture(func(w io.Writer, p diagram.Picture) error { return svg.Sequence(w, p, true) })},
		{"mermaid", picture(func(w io.Writer, p diagram.Picture) error { return mermaid.Of(p).Write(w) })},
		{"text", func(w io.Writer, c Cell, h checker.History) error { return Story(printable.NewWriter(w), c, h, View{}) }},
		{"perfetto", func(w io.Writer, c Cell, h checker.History) error { // a viewer with zoom can show all moments
			return perfetto.Write(printable.NewJSONWriter(w), Picture(c, h, len(h.Events)))
		}},
	}
}

// Formats returns the names of the formats in which a cell can be drawn.
func Formats() []string { return each(drawings(), func(d drawing) string { return d.name }) }
