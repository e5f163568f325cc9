package tui

import (
	"fmt"
	"strings"

	"github.com/charmbracelet/x/ansi"

	"github.com/lockfault/lockfault/reports"
)

// Marks that repeat the meaning of colours.
const (
	markNow = ">" // the current row, and a truth that it changed
	markOwn = "*" // a row of the followed lane
)

const (
	// widest is the largest width of the column of a truth in the table; the panel below shows it
	// in full.
	widest = 24
	// leastWhat is the width that the column of events keeps before columns of truths are shown.
	leastWhat = 46
	// narrow is the window width below which the numbers of events are left out.
	narrow = 50
	// gap is the number of spaces between two columns.
	gap = 2
)

// sizes holds the natural widths of the columns of a story, and its longest truths.
type sizes struct {
	number, seconds, what int
	truths                [4]int
	longest               [4]string // the longest text of each truth in the panel
}

// Indexes of the four truths.
const (
	belief = iota
	server
	result
	damage
)

// truth is one of the four truths as the panel shows it.
type truth struct {
	name    string
	text    string
	changed bool // by the current row
}

func measure(told reports.Narrative) sizes {
	var s sizes
	for _, r := range append([]reports.Row{reports.Headings()}, told.Rows...) {
		s.number, s.seconds, s.what = max(s.number, width(r.Number)), max(s.seconds, width(r.Seconds)), max(s.what, width(r.What))
		for i, text := range columns(r) {
			s.truths[i] = min(widest, max(s.truths[i], width(text)))
		}
		for i, t := range truths(r) {
			if len(t.text) > len(s.longest[i]) {
				s.longest[i] = t.text
			}
		}
	}
	return s
}

// columns returns the texts of a row for the columns of the four truths.
func columns(r reports.Row) [4]string { return [4]string{r.Belief, r.Server, r.Result, r.Damage} }

// truths returns the four truths after a row.
func truths(r reports.Row) [4]truth {
	either := func(list []string, with, none string) string {
		if len(list) == 0 {
			return none
		}
		together := make([]string, len(list))
		for i, text := range list {
			together[i] = strings.ReplaceAll(text, " ", hardSpace)
		}
		return strings.Join(together, with)
	}
	overlap := "no"
	if r.Now.Overlap() {
		overlap = "yes"
	}
	return [4]truth{
		{"belief", either(r.Now.Believers, " and ", "nobody"), r.Believes()},
		{"server", either(r.Now.Keys, ", ", "no server has had the key"), r.Server != ""},
		{"result", either(r.Now.Results, ", ", "nothing has returned"), r.Result != ""},
		{"damage", "overlap now: " + overlap + "; " + either(latest(r.Now.Writes), ", ", "no write so far"), r.Damage != ""},
	}
}

// hardSpace is a space at which lines are not broken.
const hardSpace = "\u00a0"

// mostWrites is the number of writes that are listed; earlier ones are only counted.
const mostWrites = 6

func latest(writes []string) []string {
	if left := len(writes) - mostWrites; left > 0 {
		return append([]string{fmt.Sprintf("%d before", left)}, writes[left:]...)
	}
	return writes
}

// layout is the distribution of the lines of a window.
type layout struct {
	clientNames, head, rules, keys bool   // whether the line is shown
	rows                           int    // largest number of rows of the story
	panel                          [4]int // lines of each truth
	verdict                        []string
	seen                           int // visible lines of the verdict
}

// layout distributes the lines of the window. The current event and the truths come first;
// everything else is shown if there is room.
func (m Model) layout() layout {
	l := layout{keys: m.height >= 12, clientNames: m.height >= 10, head: m.height >= 14, rules: m.height >= 18}
	least := 1
	if l.rules {
		least = 3
	}
	most := max(1, m.height/12)     // lines for each truth
	if len(m.narrative.Rows) == 0 { // only a verdict
		l.head, l.rules, least = false, false, 0
	} else {
		for i := range l.panel {
			l.panel[i] = min(most, len(m.wrapped(m.sizes.longest[i], most)))
		}
	}
	left := m.height - 1 // the heading
	for _, line := range []bool{l.clientNames, l.head, l.rules, l.keys} {
		if line {
			left--
		}
	}
	room := left - least // room for the panel and the verdict
	if m.ended() {
		l.verdict = m.verdict
		if l.rules {
			room--
			left--
		}
		// In a very small window the verdict replaces some truths.
		l.seen = min(len(l.verdict), max(room-sum(l.panel), (room+2)/3))
		room -= l.seen
	}
	l.seen = max(0, l.seen)
	// Shorten all truths before removing any. Belief and damage, which show an overlap, are removed
	// last.
	for _, least := range []int{1, 0} {
		for _, i := range []int{result, server, damage, belief} {
			for l.panel[i] > least && sum(l.panel) > room {
				l.panel[i]--
			}
		}
	}
	l.rows = max(least, left-sum(l.panel)-l.seen)
	return l
}

func sum(list [4]int) (n int) {
	for _, i := range list {
		n += i
	}
	return n
}

// hidden returns the number of lines of the verdict that do not fit into the window.
func (m Model) hidden() int {
	l := m.layout()
	return len(l.verdict) - l.seen
}

// Screen returns the lines of the window. They contain escape codes only for colours.
func (m Model) Screen() []string {
	l := m.layout()
	var lines []string
	add := func(line string, style string) {
		lines = append(lines, m.styled(ansi.Truncate(line, m.width, "…"), style))
	}
	add(m.heading(), bold)
	if l.clientNames {
		add(m.clientLines(), "")
	}
	if l.head {
		add(m.row(reports.Headings(), "", ""), "")
	}
	if n := len(m.narrative.Rows); n > 0 {
		for at := max(0, m.at+1-l.rows); at <= m.at; at++ {
			now, own, style := "", "", ""
			if at == m.at {
				now, style = markNow, bold
			}
			if m.lane != everybody && m.follows(at) {
				own = markOwn
			}
			add(m.row(m.narrative.Rows[at], now, own), style)
		}
		for blank := m.at + 1; blank < l.rows; blank++ {
			add("", "") // keep the panel in its place
		}
	}
	if l.rules {
		add(strings.Repeat("─", m.width), "")
	}
	if len(m.narrative.Rows) > 0 {
		row := m.narrative.Rows[m.at]
		for i, t := range truths(row) {
			style := ""
			switch {
			case i == damage && row.Now.Overlap():
				style = red
			case t.changed:
				style = bold
			}
			told := m.wrapped(t.text, l.panel[i])
			for k, line := range told {
				before := strings.Repeat(" ", indent)
				if k == 0 {
					before = fmt.Sprintf("%-2s%-8s", mark(t.changed), t.name)
				}
				add(before+line, style)
			}
			for range l.panel[i] - len(told) { // keep the other truths in their places
				add("", "")
			}
		}
	}
	if m.ended() {
		if l.rules {
			add(strings.Repeat("─", m.width), "")
		}
		from := min(m.scroll, len(l.verdict)-l.seen)
		for i, line := range l.verdict[from : from+l.seen] {
			style := ""
			if from+i == 0 {
				style = bold
			}
			add(line, style)
		}
	}
	if l.keys {
		for len(lines) < m.height-1 {
			add("", "")
		}
		add(m.keys(l), "")
	}
	return lines[:min(len(lines), m.height)]
}

func mark(is bool) string {
	if is {
		return markNow
	}
	return ""
}

// heading returns the name of the cell and the position in the story.
func (m Model) heading() string {
	where := ""
	if n := len(m.narrative.Rows); n > 0 {
		where = fmt.Sprintf("%d of %d", m.at+1, n)
	}
	if m.running {
		where = "running, " + where
	}
	if room := m.width - width(where) - gap; where != "" && room > 10 {
		return pad(m.narrative.Heading, room, false) + strings.Repeat(" ", gap) + where
	}
	return m.narrative.Heading
}

// clientLines returns the list of lanes that can be followed, with the current one in brackets. If
// the line is too long, lanes before the current one are left out.
func (m Model) clientLines() string {
	names := append([]string{"all"}, m.narrative.Lanes...)
	at := m.lane + 1
	names[at] = "[" + names[at] + "]"
	for from := range at + 1 {
		line := "follow: "
		if from > 0 {
			line += "… "
		}
		if line += strings.Join(names[from:at+1], " "); width(line) <= m.width-gap || from == at {
			return strings.Join(append([]string{line}, names[at+1:]...), " ")
		}
	}
	return ""
}

// keys returns the help line on keys, or the note on the last key.
func (m Model) keys(l layout) string {
	hidden := len(l.verdict) - l.seen
	switch {
	case m.note != "":
		return m.note
	case hidden > m.scroll:
		return fmt.Sprintf("space for the rest of the verdict, lines left: %d, b back, q quit", hidden-m.scroll)
	case hidden > 0:
		return "this is the end: b back, g first, q quit"
	}
	return "space next  b back  g first  G last  r run/stop  ↑↓ follow  esc all  q quit"
}

// row returns a line of the table, with as many columns of truths, from the left, as fit into the
// window.
func (m Model) row(r reports.Row, now, own string) string {
	line := fmt.Sprintf("%-1s%-1s ", now, own)
	if m.width >= narrow {
		line += pad(r.Number, m.sizes.number, true) + strings.Repeat(" ", gap)
	}
	line += pad(r.Seconds, m.sizes.seconds, true) + strings.Repeat(" ", gap)
	room := m.width - width(line)
	what, shown := min(m.sizes.what, room), 0
	for _, size := range m.sizes.truths {
		if rest := room - gap - size; rest >= min(m.sizes.what, leastWhat) {
			room, what = rest, min(m.sizes.what, rest)
			shown++
			continue
		}
		break
	}
	line += pad(r.What, max(0, what), false)
	for i, text := range columns(r) {
		if i < shown {
			line += strings.Repeat(" ", gap) + pad(text, m.sizes.truths[i], false)
		}
	}
	return strings.TrimRight(line, " ")
}

// indent is the column at which the text of a truth begins.
const indent = 10

// wrapped breaks the text of a truth into at most most lines.
func (m Model) wrapped(says string, most int) []string {
	room := max(1, m.width-indent)
	lines := fold(says, room, "")
	for i := range lines {
		lines[i] = strings.ReplaceAll(lines[i], hardSpace, " ")
	}
	if len(lines) > most {
		lines = lines[:most]
		if most > 0 {
			lines[most-1] = ansi.Truncate(lines[most-1]+" …", room, "…")
		}
	}
	return lines
}

// fold breaks a text into lines of at most limit columns, at spaces if possible. Lines after the
// first begin with indent, unless it takes more than half of the width.
func fold(text string, limit int, indent string) []string {
	if width(indent)*2 > limit {
		indent = ""
	}
	first, rest, _ := strings.Cut(ansi.Wrap(text, limit, " "), "\n")
	if rest == "" {
		return []string{first}
	}
	lines := []string{first}
	for line := range strings.SplitSeq(ansi.Wrap(strings.ReplaceAll(rest, "\n", " "), limit-width(indent), " "), "\n") {
		lines = append(lines, indent+line)
	}
	return lines
}

// width returns the number of terminal columns of a text.
func width(text string) int { return ansi.StringWidth(text) }

// pad pads or truncates a text to size columns.
func pad(text string, size int, right bool) string {
	text = ansi.Truncate(text, size, "…")
	space := strings.Repeat(" ", max(0, size-width(text)))
	if right {
		return space + text
	}
	return text + space
}

// Styles, as the escape codes that begin and end them.
const (
	bold  = "\x1b[1m"
	red   = "\x1b[1;31m"
	plain = "\x1b[m"
)

func (m Model) styled(line, style string) string {
	if !m.colour || style == "" || line == "" {
		return line
	}
	return style + line + plain
}
