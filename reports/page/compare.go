package page

import (
	_ "embed"
	"html/template"
	"io"
)

//go:embed compare.html
var compareSource string

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
