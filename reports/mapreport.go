package reports

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"html/template"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/lockfault/lockfault/checker"
	"github.com/lockfault/lockfault/internal/input"
	"github.com/lockfault/lockfault/internal/printable"
	"github.com/lockfault/lockfault/reports/page"
	"github.com/lockfault/lockfault/reports/svg"
)

// Names of a map's files: its data, its table for spreadsheets and its picture. The map's page is
// [HTMLFile] in the same directory.
const (
	MapFile    = "map.json"
	MapTable   = "map.csv"
	MapPicture = "map.svg"
)

// A MapReport is a map of where a lock is safe, as in map.json.
type MapReport struct {
	Tool     string            `json:"tool"`
	Version  string            `json:"version"`
	Strategy string            `json:"strategy"`
	Scenario string            `json:"scenario"`
	World    string            `json:"world"`
	Seed     uint64            `json:"seed"`
	Nodes    int               `json:"nodes,omitempty"`
	Command  string            `json:"command"`
	Of       []checker.Anomaly `json:"of"` // anomalies that count
	X        MapAxis           `json:"x"`
	Y        *MapAxis          `json:"y,omitempty"`
	// Grid is the number of points of a uniform grid that is everywhere as fine as this map is at
	// its boundaries.
	Grid    int         `json:"grid"`
	Probes  []MapProbe  `json:"probes"`
	Squares []MapSquare `json:"squares"`
	Lines   []MapLine   `json:"lines"`
	// Counts holds the number of points for each answer except held.
	Counts []MapCount `json:"counts"`
	// Loose counts the squares of the initial size that were probed only at their corners and, if
	// Inside is true, at one more point inside. Such a square is LooseX wide and LooseY high.
	Inside bool        `json:"inside"`
	Loose  int         `json:"loose"`
	LooseX string      `json:"loose_x"`
	LooseY string      `json:"loose_y,omitempty"`
	Void   int         `json:"void"` // probes without a verdict
	Why    string      `json:"why,omitempty"`
	Sides  []MapScript `json:"sides"`
}

// A MapAxis is a parameter with the range that was searched, divided into Steps steps.
type MapAxis struct {
	Name  string   `json:"name"`
	Steps int      `json:"steps"`
	Ticks []string `json:"ticks"` // at equal distances, including both ends
}

// A MapProbe is the result at a point, at the steps I and J of the axes.
type MapProbe struct {
	I         int               `json:"i"`
	J         int               `json:"j"`
	X         string            `json:"x"`
	Y         string            `json:"y,omitempty"`
	Verdict   Verdict           `json:"verdict"`
	Anomalies []checker.Anomaly `json:"anomalies"`
}

// A MapSquare is a part of the map whose probes gave the same answer. A mixed square has different
// answers, but is too small to be halved.
type MapSquare struct {
	I      int    `json:"i"`
	J      int    `json:"j"`
	Side   int    `json:"side"`
	Answer string `json:"answer"`
	Mixed  bool   `json:"mixed,omitempty"`
}

// Answers that are not anomalies.
const (
	MapHeld = "held"
	MapVoid = "no verdict"
)

// A MapCount holds the number of points with an answer, and the lowest of them.
type MapCount struct {
	Answer string `json:"answer"`
	Points int    `json:"points"`
	X      string `json:"x"`
	Y      string `json:"y,omitempty"`
}

// A MapLine describes the answers along a line of the map.
type MapLine struct {
	Where string `json:"where"` // such as "with lease 30s, along pause"
	Text  string `json:"says"`
}

// A MapScript is the script of a point next to a boundary.
type MapScript struct {
	Answer  string `json:"answer"`
	X       string `json:"x"`
	Y       string `json:"y,omitempty"`
	File    string `json:"file"`
	Command string `json:"command"`
	Text    string `json:"-"`
}

// ReadMap reads the map in a directory.
func ReadMap(dir string) (*MapReport, error) {
	f, err := openBelow(dir, MapFile, input.Document)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	text, err := input.ReadAll(f, MapFile, input.Document)
	if err != nil {
		return nil, err
	}
	m := &MapReport{}
	if err := json.Unmarshal(text, m); err != nil {
		return nil, err
	}
	if m.Tool != Tool || m.X.Steps == 0 {
		return nil, errors.New("it is no map")
	}
	return m, nil
}

// JSON writes the map in the format of map.json.
func (m *MapReport) JSON(w io.Writer) error {
	e := json.NewEncoder(printable.NewJSONWriter(w))
	e.SetEscapeHTML(false)
	return e.Encode(m)
}

// CSV writes a header and a row for each probe: its values, its verdict, and its anomalies
// separated by spaces.
func (m *MapReport) CSV(w io.Writer) error {
	c := csv.NewWriter(w)
	head := []string{m.X.Name}
	if m.Y != nil {
		head = append(head, m.Y.Name)
	}
	_ = c.Write(append(head, "verdict", "anomalies"))
	for _, p := range m.Probes {
		row := []string{p.X}
		if m.Y != nil {
			row = append(row, p.Y)
		}
		_ = c.Write(append(row, string(p.Verdict), spaced(p.Anomalies)))
	}
	c.Flush()
	return c.Error()
}

// Name returns the title of the map: the strategy, the scenario and the axes.
func (m *MapReport) Name() string {
	return fmt.Sprintf("%s under %s, %s", shown(m.Strategy), shown(m.Scenario), m.axes())
}

func (m *MapReport) axes() string {
	if m.Y == nil {
		return "along " + m.X.Name
	}
	return m.X.Name + " × " + m.Y.Name
}

// answers returns the answers of the squares: held first, then the anomalies, and no verdict last.
func (m *MapReport) answers() []string {
	var list []string
	for _, s := range m.Squares {
		if !slices.Contains(list, s.Answer) && s.Answer != MapHeld && s.Answer != MapVoid {
			list = append(list, s.Answer)
		}
	}
	slices.Sort(list)
	list = append([]string{MapHeld}, list...)
	if slices.ContainsFunc(m.Squares, func(s MapSquare) bool { return s.Answer == MapVoid }) {
		list = append(list, MapVoid)
	}
	return list
}

// SVG draws the map. If alone is true, the output is a complete SVG file; if not, it is an element
// of a page.
func (m *MapReport) SVG(w io.Writer, alone bool) error {
	h := svg.Heat{Name: m.Name(), X: svg.Axis{Name: m.X.Name, Steps: m.X.Steps, Ticks: m.X.Ticks}}
	if m.Y != nil {
		h.Y = &svg.Axis{Name: m.Y.Name, Steps: m.Y.Steps, Ticks: m.Y.Ticks}
	}
	for _, answer := range m.answers() {
		a := svg.Area{Name: answer, Safe: answer == MapHeld, Void: answer == MapVoid}
		for _, s := range m.Squares {
			if s.Answer == answer && !s.Mixed {
				a.Squares = append(a.Squares, [3]int{s.I, s.J, s.Side})
			}
		}
		h.Areas = append(h.Areas, a)
	}
	for _, s := range m.Squares {
		if s.Mixed {
			h.Boundary = append(h.Boundary, [3]int{s.I, s.J, s.Side})
		}
	}
	return h.Write(w, alone)
}

// Missed describes the findings that the map may have missed.
func (m *MapReport) Missed() string {
	if m.Loose == 0 {
		return "Every part of the map has a change in it, and was looked at closely."
	}
	size, both := m.LooseX+" of "+m.X.Name, ""
	if m.Y != nil {
		size += " × " + m.LooseY + " of " + m.Y.Name
		both = " in both directions"
	}
	text := fmt.Sprintf("What could be missed: %s of %s, of the first size, had equal answers at their corners", count(m.Loose, "part"), size)
	if m.Inside {
		text += ", and at one point at random inside, and were looked at no closer. Another answer that fills half of one of them, and none of its corners, was missed one time in two"
	} else {
		text += ", and nothing inside of them was played"
	}
	return text + "; one that is as large as such a part" + both + " was not missed."
}

// Broken returns a line for each answer other than held, with the number of its points and the
// first of them.
func (m *MapReport) Broken() []string {
	var list []string
	for _, c := range m.Counts {
		text := fmt.Sprintf("%s at %s of %s points, the first at %s %s", c.Answer, Thousands(c.Points), Thousands(len(m.Probes)), m.X.Name, c.X)
		if m.Y != nil {
			text += ", " + m.Y.Name + " " + c.Y
		}
		list = append(list, text)
	}
	return list
}

// Table writes the map for a terminal.
func (m *MapReport) Table(w io.Writer) error {
	var b bytes.Buffer
	fmt.Fprintf(&b, "%s; world %s, seed %d\n", m.Name(), m.World, m.Seed)
	fmt.Fprintf(&b, "%s points played, where a grid as close has %s\n\n", Thousands(len(m.Probes)), Thousands(m.Grid))
	m.chart(&b)
	if len(m.Counts) == 0 {
		fmt.Fprintf(&b, "held at all of %s points\n", Thousands(len(m.Probes)))
	}
	for _, says := range m.Broken() {
		fmt.Fprintln(&b, says)
	}
	b.WriteByte('\n')
	for _, l := range m.Lines {
		fmt.Fprintf(&b, "%s: %s\n", l.Where, l.Text)
	}
	fmt.Fprintf(&b, "\n%s\n", m.Missed())
	if m.Void > 0 {
		why, _, _ := strings.Cut(m.Why, "\n")
		fmt.Fprintf(&b, "%s had no verdict; the first: %s\n", count(m.Void, "point"), shortLine(why))
	}
	for _, s := range m.Sides {
		fmt.Fprintf(&b, "%s: %s\n", s.Answer, readable(s.Command))
	}
	_, err := b.WriteTo(w)
	return err
}

// Characters of the chart that are not in chartLetters: held, no verdict, and several answers.
const (
	chartHeld  = '.'
	chartVoid  = '?'
	chartMixed = '+'
)

func chartLetters() string { return "#%@*oxABCDEFGHIJKLMNPQRSTUVWYZ" }

// chartCells is the largest number of characters of the chart along an axis.
const chartCells = 32

// chart draws the map with a character for each answer. A character that covers squares with
// different answers is [chartMixed].
func (m *MapReport) chart(b *bytes.Buffer) {
	cells := min(chartCells, m.X.Steps)
	rows := 1
	if m.Y != nil {
		rows = min(chartCells/2, m.Y.Steps)
	}
	letters, legend := map[string]rune{}, []string{}
	next := []rune(chartLetters())
	for _, a := range m.answers() {
		switch {
		case a == MapHeld:
			letters[a] = chartHeld
		case a == MapVoid:
			letters[a] = chartVoid
		default:
			letters[a] = next[0]
			if len(next) > 1 { // all further answers share the last letter
				next = next[1:]
			}
		}
		legend = append(legend, fmt.Sprintf("%c %s", letters[a], a))
	}
	names := 0
	if m.Y != nil {
		for _, t := range m.Y.Ticks {
			names = max(names, len(t))
		}
		fmt.Fprintf(b, "%s\n", m.Y.Name)
	}
	seen := m.letters(cells, rows, letters)
	for row := rows - 1; row >= 0; row-- {
		label := ""
		if m.Y != nil {
			switch row {
			case rows - 1:
				label = m.Y.Ticks[len(m.Y.Ticks)-1]
			case rows / 2:
				label = m.Y.Ticks[len(m.Y.Ticks)/2]
			case 0:
				label = m.Y.Ticks[0]
			}
		}
		fmt.Fprintf(b, "%*s |", names, label)
		for cell := range cells {
			b.WriteRune(seen[row][cell])
		}
		b.WriteByte('\n')
	}
	first, last := m.X.Ticks[0], m.X.Ticks[len(m.X.Ticks)-1]
	fmt.Fprintf(b, "%*s  %s%*s  %s\n", names, "", first, max(len(last)+1, cells-len([]rune(first))), last, m.X.Name)
	fmt.Fprintf(b, "%*s  %s, %c where it changes\n\n", names, "", strings.Join(legend, ", "), chartMixed)
}

// letters returns the characters of the chart, rows from the bottom up, each from left to right.
func (m *MapReport) letters(cells, rows int, of map[string]rune) [][]rune {
	chart := make([][]rune, rows)
	for i := range chart {
		chart[i] = make([]rune, cells)
	}
	for _, s := range m.Squares {
		letter := of[s.Answer]
		if s.Mixed {
			letter = chartMixed
		}
		from, to := 0, 0
		if m.Y != nil {
			from, to = s.J*rows/m.Y.Steps, ((s.J+s.Side)*rows-1)/m.Y.Steps
		}
		for row := from; row <= to; row++ {
			for cell := s.I * cells / m.X.Steps; cell <= ((s.I+s.Side)*cells-1)/m.X.Steps; cell++ {
				if was := &chart[row][cell]; *was == 0 || *was == letter {
					*was = letter
				} else {
					*was = chartMixed
				}
			}
		}
	}
	return chart
}

// mapTitle begins the title of the page of a map.
const mapTitle = Tool + " map"

// Page writes the map as one HTML file.
func (m *MapReport) Page(w io.Writer) error {
	var picture strings.Builder
	if err := m.SVG(&picture, false); err != nil {
		return err
	}
	p := page.Map{
		Title: mapTitle + " " + m.Name(), Picture: template.HTML(picture.String()), Missed: m.Missed(),
		Provenance: [][2]string{
			{"version", shortLine(m.Version)}, {"world", shown(m.World)}, {"seed", fmt.Sprint(m.Seed)},
			{"points played", Thousands(len(m.Probes))}, {"a grid as close has", Thousands(m.Grid)}, {"command", readable(m.Command)},
		},
	}
	p.Broken = each(m.Broken(), readable)
	for _, l := range m.Lines {
		p.Lines = append(p.Lines, [2]string{shortLine(l.Where), readable(l.Text)})
	}
	if m.Void > 0 {
		p.Void = count(m.Void, "point") + " had no verdict; the first: " + readable(m.Why)
	}
	for _, s := range m.Sides {
		at := m.X.Name + " " + s.X
		if m.Y != nil {
			at += ", " + m.Y.Name + " " + s.Y
		}
		p.Sides = append(p.Sides, page.MapSide{Answer: s.Answer, At: at, Command: readable(s.Command), Script: printable.Text(s.Text)})
	}
	return page.OfMap(w, p)
}

// CheckMap returns an error if the directory has a file with the name of a map's file but no map.
func CheckMap(dir string) error {
	if _, err := ReadMap(dir); err == nil {
		return nil
	}
	for _, name := range []string{MapFile, MapTable, MapPicture, HTMLFile} {
		if _, err := os.Lstat(filepath.Join(dir, name)); err == nil {
			return fmt.Errorf("no map wrote the %s that is in %s: move it away, or name another directory", name, dir)
		}
	}
	return nil
}
