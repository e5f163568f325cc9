package reports

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path/filepath"
	"reflect"
	"slices"

	"github.com/lockfault/lockfault/checker"
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

// unlike describes the first difference between the cell and its history. unlike returns "" if they
// agree.
func (c Cell) unlike(h checker.History) string {
	v := checker.Check(h)
	is := c
	is.Verdict = Held
	if len(v.Witnesses) > 0 {
		is.Verdict = Violated
	}
	is.Derive(v, h)
	is.Settle()
	switch {
	case is.Verdict != c.Verdict:
		return fmt.Sprintf("it says %s, and its history is %s", c.Verdict, is.Verdict)
	case !slices.Equal(is.Anomalies, c.Anomalies):
		return fmt.Sprintf("it says %s, and its history shows %s", orNone(c.Anomalies), orNone(is.Anomalies))
	case !slices.EqualFunc(is.Witnesses, c.Witnesses, func(a, b checker.Witness) bool { return reflect.DeepEqual(a, b) }):
		return "its proofs are not those of its history"
	case !reflect.DeepEqual(is.Unjudged, c.Unjudged):
		return "what was not judged is not what its history leaves open"
	case is.Linearizable != c.Linearizable || !reflect.DeepEqual(is.Conflict, c.Conflict):
		return "it says otherwise than its history whether there is a legal order, or why not"
	case is.Together != c.Together:
		return fmt.Sprintf("it says that two believed at once for %v, and in its history they do for %v", c.Together, is.Together)
	case is.Nodes != c.Nodes || is.Validity != c.Validity || is.Tokens != c.Tokens:
		return "its nodes, its validity or its tokens are not those of its history"
	case c.Commands != nil && !maps.Equal(is.Commands, c.Commands):
		return "it says otherwise than its history how many commands an operation takes"
	case is.Lease != c.Lease:
		return fmt.Sprintf("it says that the lease was %v, and its history says %v", c.Lease, is.Lease)
	case is.AsExpected != c.AsExpected || !slices.Equal(is.Better, c.Better):
		return fmt.Sprintf("as_expected is %v, and by what is expected it would be %v", c.AsExpected, is.AsExpected)
	}
	return ""
}

func orNone(list []checker.Anomaly) string {
	if len(list) == 0 {
		return "nothing"
	}
	return names(list)
}
