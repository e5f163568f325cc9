package page

import (
	_ "embed"
	"html/template"
	"io"

	"github.com/lockfault/lockfault/reports/svg"
)

//go:embed histories.html
var historiesSource string

// Histories are what was checked.
type Histories struct {
	Title string
	List  []History
}

// A History is one of them.
type History struct {
	Name, Verdict, Spec string
	Bad                 bool // it isn't valid
	Notes               []string
	Violations          []Violation
}

// A Violation is what is wrong with a history.
type Violation struct {
	Rule, Key, Text string
	Certain         bool
	Timeline        template.HTML // drawn here, and escaped there
	Sentences       []Sentence    // by lines
	Left            int           // how many there are beside
}

// OfHistories writes what was checked as one HTML file.
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
