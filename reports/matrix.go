package reports

import (
	"fmt"
	"slices"
	"strings"
)

// A Matrix compares what each strategy showed under each scenario. A Matrix keeps a few bytes of
// each cell. The zero value is empty and ready for use. A Matrix is not safe for concurrent use.
type Matrix struct {
	scenarios, strategies index
	squares               map[[2]int]square
	varying               map[string]bool // strategies whose histories may differ between runs
}

// A Tally counts cells.
type Tally struct {
	Cells                                          int
	Held, Violated, NotApplicable, Unknown, Failed int
	// Differing counts the decided cells that differ from their expectation. Better counts the
	// cells that are as expected with fewer anomalies than allowed, Less those of them whose lock
	// also did less than the reference lock. Chance counts the cells whose anomalies depend on
	// chance. Unjudged counts the decided cells in which server-side anomalies were not checked.
	Differing, Better, Less, Chance, Unjudged int
}

// A square holds what the table shows of a cell.
type square struct {
	verdict    Verdict
	found      set
	asExpected bool
	better     bool
	less       bool // see [NotBetter]
	chance     bool
	unjudged   bool
	untested   bool
}

// Add adds a cell. Rows and columns appear in the order in which their names are first added. A
// cell with the names of an earlier one replaces it. An unknown anomaly is an error.
func (m *Matrix) Add(c Cell) error {
	found, err := setOf(c.Anomalies)
	if err != nil {
		return fmt.Errorf("%s under %s: %w", c.Strategy, c.Scenario, err)
	}
	if m.squares == nil {
		m.squares, m.varying = map[[2]int]square{}, map[string]bool{}
	}
	if c.Varies != "" {
		m.varying[c.Strategy] = true
	}
	at := [2]int{m.scenarios.place(c.Scenario), m.strategies.place(c.Strategy)}
	s := square{c.Verdict, found, c.AsExpected, len(c.Better) > 0, c.NotBetter != nil, c.ByChance() != "", c.Reservation() != "", c.Untested()}
	switch s.verdict {
	case Held, Violated, NotApplicable, Unknown:
	default:
		s.verdict = Error // an unknown verdict is not an answer
	}
	m.squares[at] = s
	return nil
}

// untested reports whether a required line of a script matched nothing in some cell.
func (m *Matrix) untested() bool {
	for _, s := range m.squares {
		if s.untested {
			return true
		}
	}
	return false
}

// varies names the strategies whose histories may differ between runs of a seed. varies returns ""
// without such strategies.
func (m *Matrix) varies() string {
	of := slices.DeleteFunc(slices.Clone(m.strategies.names), func(name string) bool { return !m.varying[name] })
	if len(of) == 0 {
		return ""
	}
	return strings.Join(of, ", ") + ": the same seed gives the same verdict, but not always the same history"
}

// Tally returns the counts of the cells added so far.
func (m *Matrix) Tally() (t Tally) {
	for _, s := range m.squares {
		t.count(s)
	}
	return t
}

func (t *Tally) count(s square) {
	t.Cells++
	switch s.verdict {
	case Held:
		t.Held++
	case Violated:
		t.Violated++
	case NotApplicable:
		t.NotApplicable++
	case Unknown:
		t.Unknown++
	case Error:
		t.Failed++
	}
	for _, of := range []struct {
		is    bool
		count *int
	}{
		{decided(s.verdict) && !s.asExpected, &t.Differing}, {s.better, &t.Better}, {s.less, &t.Less}, {s.chance, &t.Chance}, {s.unjudged, &t.Unjudged},
	} {
		if of.is {
			*of.count++
		}
	}
}

// String returns the counts in one line, without zeros.
func (t Tally) String() string {
	type part struct {
		n    int
		says string
	}
	counted := func(parts ...part) (list []string) {
		for _, p := range parts {
			if p.n > 0 {
				list = append(list, fmt.Sprintf("%d %s", p.n, p.says))
			}
		}
		return list
	}
	text := count(t.Cells, "cell")
	if t.Cells > 0 {
		text += ": " + strings.Join(counted(part{t.Held, "held"}, part{t.Violated, "violated"}, part{t.NotApplicable, "not applicable"},
			part{t.Unknown, "unknown"}, part{t.Failed, "in error"}), ", ")
	}
	switch {
	case t.Unknown+t.Failed > 0:
		text += fmt.Sprintf("; %d not decided, %d not as expected", t.Unknown+t.Failed, t.Differing)
	case t.Differing > 0:
		text += fmt.Sprintf("; %d not as expected", t.Differing)
	default:
		text += "; all as expected"
	}
	return strings.Join(append([]string{text}, counted(part{t.Better, "better"}, part{t.Less, "granting less"},
		part{t.Chance, "by chance"}, part{t.Unjudged, "judged in part"})...), ", ")
}

// Marks of entries without anomalies, of entries that differ from their expectation, and of entries
// with a reservation.
const (
	markHeld          = "·"
	markNotApplicable = "-"
	markNotPlayed     = "…" // because the run was interrupted
	markUnknown       = "?"
	markError         = "!"
	markDiffers       = "*"
	markBetter        = "+"
	markLess          = "<"
	markChance        = "±"
	markUnjudged      = "~"
	markUntested      = "°"
)

// squareText returns an entry in full words.
func (m *Matrix) squareText(scenario, strategy int) string {
	s, ok := m.squares[[2]int{scenario, strategy}]
	if !ok {
		return markNotPlayed
	}
	var text string
	switch {
	case s.verdict == NotApplicable:
		return markNotApplicable
	case s.verdict == Unknown || s.verdict == Error:
		return string(s.verdict)
	case s.found == 0:
		text = markHeld
	default:
		text = names(s.found.list())
	}
	return text + s.mark(" ")
}

// mark returns the marks of a decided entry, preceded by the separator if there are any.
func (s square) mark(separator string) string {
	text := ""
	switch {
	case !s.asExpected:
		text = markDiffers
	case s.better:
		text = markBetter
	case s.less:
		text = markLess
	case s.chance:
		text = markChance
	}
	if s.unjudged {
		text += markUnjudged
	}
	if s.untested {
		text += markUntested
	}
	if text == "" {
		return ""
	}
	return separator + text
}
