package reports

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
)

// A Recheck is the result of deriving a report's results again from its histories.
type Recheck struct {
	// Cells counts the cells with an equal result, Undecided the cells that had no verdict, and
	// NotApplicable the cells that were not applicable.
	Cells, Undecided, NotApplicable int
	// Differing holds a line for each cell with another result, and for each script with a wrong
	// hash.
	Differing []string
}

// RecheckDir judges each history of a report again and compares the result with results.json: the
// verdict, the anomalies and their proofs, the legal order, the overlap, and whether the cell is as
// expected. Undecided cells are only counted. RecheckDir reads one history at a time, and stops
// with an error when the context ends.
func RecheckDir(ctx context.Context, dir string) (Recheck, error) {
	var r Recheck
	head, err := Source{Results: filepath.Join(dir, ResultsFile), Err: ctx.Err}.scan(func(c Cell) error {
		switch {
		case c.Verdict == NotApplicable:
			r.NotApplicable++
			return nil
		case !c.Decided():
			r.Undecided++
			return nil
		}
		why := "it has no history"
		if c.History != "" {
			h, err := c.historyIn(dir)
			switch {
			case errors.Is(err, fs.ErrNotExist):
				why = "its history is missing: " + c.History
			case errors.Is(err, errNotIts):
				why = fmt.Sprintf("its history is that of %s under %s in %s", h.Meta.Strategy, h.Meta.Scenario, h.Meta.World)
			case err != nil:
				return err
			default:
				why = c.unlike(h)
			}
		}
		if why == "" {
			r.Cells++
			return nil
		}
		r.Differing = append(r.Differing, shortLine(fmt.Sprintf("%s under %s in %s: %s", c.Strategy, c.Scenario, c.World, why)))
		return nil
	})
	for _, s := range head.Scripts {
		if s.Hash != NewScript(s.Name, s.File, s.Text).Hash {
			r.Differing = append(r.Differing, shortLine(fmt.Sprintf("the script %s: its text has another hash than %s", s.Name, s.Hash)))
		}
	}
	return r, err
}
