package page

import (
	_ "embed"
	"html/template"
	"io"

	"github.com/lockfault/lockfault/reports/svg"
)

//go:embed map.html
var mapSource string

// A Map is a map of where a lock is safe.
type Map struct {
	Title, Missed, Void string
	Picture             string // SVG whose texts are already escaped
	Broken              []string
	Lines               [][2]string
	Sides               []MapSide
	Provenance          [][2]string
}

// A MapSide is a script on one side of a boundary.
type MapSide struct{ Answer, At, Command, Script string }

// OfMap writes a map as one HTML file.
func OfMap(w io.Writer, m Map) error {
	t, err := parse(mapSource)
	if err != nil {
		return err
	}
	return t.ExecuteTemplate(w, "map", struct {
		Map
		Drawn    template.HTML
		Style    template.CSS
		Patterns template.HTML
	}{m, template.HTML(m.Picture), template.CSS(style + svg.Style), template.HTML(svg.Patterns)})
}
