package page

import (
	_ "embed"
	"html/template"
	"io"

	"github.com/lockfault/lockfault/reports/svg"
)

//go:embed histories.html
var historiesSource string

// Histories holds the checked histories.
type Histories struct {
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
func OfHistories(w io.Writer, h Histories) error {
	t, err := parse(historiesSource)
	if err != nil {
		return err
	}
	return t.ExecuteTemplate(w, "histories", struct {
		Histories
		Style    template.CSS
		Patterns template.HTML
	}{h, template.CSS(style + svg.Style), template.HTML(svg.Patterns)})
}
