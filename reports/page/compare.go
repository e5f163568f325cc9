package page

import (
	_ "embed"
	"html/template"
	"io"
)

//go:embed compare.html
var compareSource string

// Differences are those of two reports.
type Differences struct {
	Title, Tally string
	Old, New     string
	Notes        []string
	Sections     []Became
	Costs        [][5]string // strategy, what, old, new, times
}

// A Became is the cells that became the same, in groups.
type Became struct {
	Title string
	Alarm bool        // it is what to look at first
	Rows  [][3]string // strategy, what, under what
}

// Compare writes the differences as one HTML file.
func Compare(w io.Writer, d Differences) error {
	t, err := parse(compareSource)
	if err != nil {
		return err
	}
	return t.ExecuteTemplate(w, "compare", struct {
		Differences
		Style template.CSS
	}{d, template.CSS(style)})
}
