package reports

import (
	"bufio"
	"io"
	"unicode/utf8"

	"github.com/lockfault/lockfault/checker"
)

// letter returns the abbreviation of an anomaly in the narrow table.
func letter(a checker.Anomaly) string {
	if d, known := checker.Describe(a); known {
		return d.Letter
	}
	return string(a)
}

// wideLimit is the largest width, in columns of a terminal, of the table in full words. A wider
// table is written in letters.
const wideLimit = 100

// Table writes the comparison for a terminal, with a row for each scenario and a column for each
// strategy. Table uses full words if they fit, and letters with a legend otherwise.
func (m *Matrix) Table(w io.Writer) error {
	b := newText(w)
	if !m.wide(b) {
		m.narrow(b)
	}
	return b.Flush()
}

// wide writes the table in full words if it fits, and reports whether it did.
func (m *Matrix) wide(b *bufio.Writer) bool {
	rows := [][]string{append([]string{""}, m.strategies.names...)}
	for i, scenario := range m.scenarios.names {
		row := []string{scenario}
		for j := range m.strategies.names {
			row = append(row, m.squareText(i, j))
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
	b.WriteByte('\n')
	m.legend(b, false)
	return true
}

// narrow writes the table in letters. The names of the strategies are on separate lines, each
// connected to its column by a vertical line.
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
	m.legend(b, true)
}

// letters returns an entry in letters.
func (m *Matrix) letters(scenario, strategy int) string {
	s, ok := m.squares[[2]int{scenario, strategy}]
	if !ok {
		return markNotPlayed
	}
	text := ""
	switch {
	case s.verdict == NotApplicable:
		return "" // an empty entry makes the others easier to find
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
	return text + s.mark("")
}

// legend explains the marks and letters in the table.
func (m *Matrix) legend(b *bufio.Writer, letters bool) {
	var all set
	used := map[string]bool{}
	for _, s := range m.squares {
		switch s.verdict {
		case NotApplicable:
			used[markNotApplicable] = true
			continue
		case Unknown:
			used[markUnknown] = true
			continue
		case Error:
			used[markError] = true
			continue
		}
		all |= s.found
		if s.found == 0 {
			used[markHeld] = true
		}
		for _, mark := range s.mark("") {
			used[string(mark)] = true
		}
	}
	if len(m.squares) < len(m.scenarios.names)*len(m.strategies.names) {
		used[markNotPlayed] = true
	}
	var entries []string
	blank := markNotApplicable
	if letters {
		blank = "blank:"
		for _, a := range all.list() {
			entries = append(entries, letter(a)+" "+string(a))
		}
	}
	for _, mark := range []struct{ mark, shown, says string }{
		{markHeld, markHeld, "nothing"},
		{markNotApplicable, blank, "not applicable"},
		{markNotPlayed, markNotPlayed, "not played"},
		{markUnknown, markUnknown, "unknown"},
		{markError, markError, "error"},
		{markDiffers, markDiffers, "differs from expectation"},
		{markBetter, markBetter, "better than expected"},
		{markLess, markLess, "shows less, and grants less"},
		{markChance, markChance, "by chance, another time more or less"},
		{markUnjudged, markUnjudged, "judged by what clients were told alone"},
		{markUntested, markUntested, "a line of the script met nothing"},
	} {
		inWords := mark.mark == markUnknown || mark.mark == markError
		if used[mark.mark] && (letters || !inWords) {
			entries = append(entries, mark.shown+" "+mark.says)
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
	if line != "" {
		writeLine(b, line)
	}
	if text := m.varies(); text != "" {
		writeLine(b, text)
	}
}
