package reports

import (
	"bufio"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/lockfault/lockfault/checker"
)

// letter is how the narrow table abbreviates an anomaly; each is a letter of
// its name.
func letter(a checker.Anomaly) string {
	switch a {
	case checker.Overlap:
		return "O"
	case checker.StaleWrite:
		return "W"
	case checker.ForeignRelease:
		return "R"
	case checker.ForeignExtend:
		return "E"
	case checker.LostLock:
		return "L"
	case checker.Unreleasable:
		return "U"
	case checker.StuckLock:
		return "S"
	case checker.Ghost:
		return "G"
	case checker.SelfDeadlock:
		return "D"
	case checker.Starvation:
		return "T"
	case checker.Unavailable:
		return "A"
	}
	return string(a)
}

// The marks of squares without letters, and of those with a difference.
const (
	markHeld          = "·"
	markNotApplicable = " "
	markUnknown       = "?"
	markError         = "!"
	markDiffers       = "*"
)

// wideLimit is how many columns of a terminal the table in full words may
// take before it gives way to the one in letters.
const wideLimit = 100

// Table writes the comparison for a terminal: a row for each scenario, a
// column for each strategy, in full words where that fits and in letters with
// a legend where it does not.
func (m *Matrix) Table(w io.Writer) error {
	b := bufio.NewWriter(w)
	if !m.wide(b) {
		m.narrow(b)
	}
	return b.Flush()
}

// wide writes the table in full words, if it fits.
func (m *Matrix) wide(b *bufio.Writer) bool {
	rows := [][]string{append([]string{""}, m.strategies.names...)}
	for i, scenario := range m.scenarios.names {
		row := []string{scenario}
		for j := range m.strategies.names {
			row = append(row, m.words(i, j))
		}
		rows = append(rows, row)
	}
	widths := make([]int, len(rows[0]))
	total := 0
	for j := range widths {
		for _, row := range rows {
			widths[j] = max(widths[j], utf8.RuneCountInString(row[j]))
		}
		total += widths[j] + 2
	}
	if total-2 > wideLimit {
		return false
	}
	for _, row := range rows {
		line := ""
		for j, text := range row {
			line += pad(text, widths[j]+2)
		}
		writeLine(b, line)
	}
	return true
}

// words says what a square shows.
func (m *Matrix) words(scenario, strategy int) string {
	s, ok := m.squares[[2]int{scenario, strategy}]
	if !ok {
		return ""
	}
	var text string
	switch {
	case s.verdict == NotApplicable:
		return "-"
	case s.verdict == Unknown || s.verdict == Error:
		return string(s.verdict)
	case s.found == 0:
		text = markHeld
	default:
		text = names(s.found.list())
	}
	if !s.asExpected {
		text += " " + markDiffers
	}
	return text
}

// narrow writes the table in letters. The names of the strategies stand one
// below the other, each at the head of a line that leads down to its column.
func (m *Matrix) narrow(b *bufio.Writer) {
	first := 0
	for _, scenario := range m.scenarios.names {
		first = max(first, utf8.RuneCountInString(scenario))
	}
	first += 2
	widths := make([]int, len(m.strategies.names))
	for j := range widths {
		for i := range m.scenarios.names {
			widths[j] = max(widths[j], utf8.RuneCountInString(m.letters(i, j)))
		}
		widths[j]++
	}

	for j, strategy := range m.strategies.names {
		line := pad("", first)
		for before := range j {
			line += pad("│", widths[before])
		}
		writeLine(b, line+strategy)
	}
	for i, scenario := range m.scenarios.names {
		line := pad(scenario, first)
		for j := range m.strategies.names {
			line += pad(m.letters(i, j), widths[j])
		}
		writeLine(b, line)
	}
	b.WriteByte('\n')
	m.legend(b)
}

// letters is words, abbreviated.
func (m *Matrix) letters(scenario, strategy int) string {
	s, ok := m.squares[[2]int{scenario, strategy}]
	if !ok {
		return ""
	}
	text := ""
	switch {
	case s.verdict == NotApplicable:
		return markNotApplicable
	case s.verdict == Unknown:
		return markUnknown
	case s.verdict == Error:
		return markError
	case s.found == 0:
		text = markHeld
	}
	for _, a := range s.found.list() {
		text += letter(a)
	}
	if !s.asExpected {
		text += markDiffers
	}
	return text
}

// legend explains the letters and marks that the table uses.
func (m *Matrix) legend(b *bufio.Writer) {
	var all set
	var held, notApplicable, unknown, failed, differs bool
	for _, s := range m.squares {
		all |= s.found
		held = held || s.found == 0 && (s.verdict == Held || s.verdict == Violated)
		notApplicable = notApplicable || s.verdict == NotApplicable
		unknown = unknown || s.verdict == Unknown
		failed = failed || s.verdict == Error
		differs = differs || !s.asExpected && s.verdict != Unknown && s.verdict != Error
	}
	var entries []string
	for _, a := range all.list() {
		entries = append(entries, letter(a)+" "+string(a))
	}
	for _, mark := range []struct {
		used bool
		says string
	}{
		{held, markHeld + " nothing"},
		{notApplicable, "blank: not applicable"},
		{unknown, markUnknown + " unknown"},
		{failed, markError + " error"},
		{differs, markDiffers + " differs from expectation"},
	} {
		if mark.used {
			entries = append(entries, mark.says)
		}
	}
	line := ""
	for _, entry := range entries {
		if line != "" && utf8.RuneCountInString(line+"   "+entry) > wideLimit {
			writeLine(b, line)
			line = ""
		}
		if line != "" {
			line += "   "
		}
		line += entry
	}
	writeLine(b, line)
}

func pad(text string, width int) string {
	return fmt.Sprintf("%-*s", width, text) // counts characters, not bytes
}

func writeLine(b *bufio.Writer, line string) {
	b.WriteString(strings.TrimRight(line, " "))
	b.WriteByte('\n')
}
