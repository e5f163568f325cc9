package page

import (
	_ "embed"
	"html/template"
	"io"

	"github.com/lockfault/lockfault/reports/svg"
)

//go:embed findings.html
var findingsSource string

// Findings holds the result of a search.
type Findings struct {
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
	t, err := parse(findingsSource)
	if err != nil {
		return err
	}
	if t, err = t.Parse(source); err != nil { // for the template of stories
		return err
	}
	return t.ExecuteTemplate(w, "findings", struct {
		Findings
		Style    template.CSS
		Patterns template.HTML
		Code     template.JS
	}{f, template.CSS(style + svg.Style), template.HTML(svg.Patterns), code()})
}
