package page

import (
	_ "embed"
	"html/template"
	"io"
)

// The templates of the pages that are no reports.
var (
	//go:embed compare.html
	compareSource string
	//go:embed findings.html
	findingsSource string
	//go:embed histories.html
	historiesSource string
	//go:embed map.html
	mapSource string
)

// Differences holds the differences between two reports.
type Differences struct {
	Title, Tally string
	Old, New     string
	Notes        []string
	Sections     []Became
	Costs        [][5]string // strategy, what, old, new, times
}

// A Became holds the cells with one kind of change, in groups.
type Became struct {
	Title string
	Alarm bool        // to be looked at first
	Rows  [][3]string // strategy, what, under what
}

// Style returns the CSS of the page.
func (Differences) Style() template.CSS { return template.CSS(style) }

// Compare writes the differences as one HTML file.
func Compare(w io.Writer, d Differences) error { return write(w, compareSource, "compare", d) }

// Findings holds the result of a search.
type Findings struct {
	pageStyle
	Title, Summary                 string
	Conclusions, Notes             []string
	Searched, Coverage, Provenance [][2]string // names and values
	Worlds                         []string    // worlds with real servers
	List                           []Finding
	Failures                       []Failure
	Stories                        []Story // one for each finding, in the same order
}

// A Finding is a row of the table.
type Finding struct {
	ID             string // ID of its story
	Anomaly, Means string
	Verdict        string // what the anomaly means for the lock, and why
	Bug            bool
	Moves          int
	Requests       int
	ShrunkFrom     int
	Said           []Said // answers of the worlds, in their order
	File           string
}

// A Said is the answer of a world to a finding.
type Said struct {
	Text             string
	Asked, Confirmed bool
}

// A Failure is a script that ended without a result.
type Failure struct{ Text, Script string }

// OfFindings writes the result of a search as one HTML file.
func OfFindings(w io.Writer, f Findings) error {
	return write(w, findingsSource+source, "findings", f) // source has the template of stories
}

// Histories holds the checked histories.
type Histories struct {
	pageStyle
	Title string
	List  []History
}

// A History is a checked history.
type History struct {
	Name, Verdict, Spec string
	Bad                 bool // not valid
	Notes               []string
	Violations          []Violation
}

// A Violation is a violation in a history.
type Violation struct {
	Rule, Key, Text string
	Certain         bool
	Timeline        template.HTML // SVG whose texts are already escaped
	Sentences       []Sentence    // by lines
	Left            int           // number of moments that are left out
}

// OfHistories writes the checked histories as one HTML file.
func OfHistories(w io.Writer, h Histories) error { return write(w, historiesSource, "histories", h) }

// A Map is a map of where a lock is safe.
type Map struct {
	pageStyle
	Title, Missed, Void string
	Picture             template.HTML // SVG whose texts are already escaped
	Broken              []string
	Lines               [][2]string
	Sides               []MapSide
	Provenance          [][2]string
}

// A MapSide is a script on one side of a boundary.
type MapSide struct{ Answer, At, Command, Script string }

// OfMap writes a map as one HTML file.
func OfMap(w io.Writer, m Map) error { return write(w, mapSource, "map", m) }
