package page

import (
	_ "embed"
	"html/template"
	"io"

	"github.com/lockfault/lockfault/reports/svg"
)

//go:embed findings.html
var findingsSource string

// Findings are what a search came to.
type Findings struct {
	Title, Summary                 string
	Conclusions, Notes             []string
	Searched, Coverage, Provenance [][2]string // what, and which
	Worlds                         []string    // of real servers, that were asked
	List                           []Finding
	Failures                       []Failure
	Stories                        []Story // one for each of the list
}

// A Finding is a line of the table.
type Finding struct {
	ID             string // of its story
	Anomaly, Means string
	Moves          int
	Requests       int
	ShrunkFrom     int
	Said           []Said // by the worlds
	File           string
}

// A Said is what a world said of a finding.
type Said struct {
	Text             string
	Asked, Confirmed bool
}

// A Failure is a script that came to nothing.
type Failure struct{ Text, Script string }

// OfFindings writes what a search came to as one HTML file.
func OfFindings(w io.Writer, f Findings) error {
	t, err := parse(findingsSource)
	if err != nil {
		return err
	}
	if t, err = t.Parse(source); err != nil { // which has the stories
		return err
	}
	return t.ExecuteTemplate(w, "findings", struct {
		Findings
		Style    template.CSS
		Patterns template.HTML
		Code     template.JS
	}{f, template.CSS(style + svg.Style), template.HTML(svg.Patterns), code()})
}
