package reports

import (
	"fmt"
	"io"
	"path/filepath"
)

var formatMermaid = Format{Name: "mermaid", Write: Diagrams}

// Diagrams writes the sequence diagram of each cell with an anomaly as Mermaid in Markdown. If any
// cell differs from its expectation, only such cells are included.
func Diagrams(w io.Writer, of Source) error {
	s, err := newSurvey(of.Results)
	if err != nil {
		return err
	}
	b := newText(w)
	fmt.Fprintf(b, "# lockfault diagrams\n\n%s.\n", s.all.Tally())
	unexpected := s.all.Tally().Differing > 0
	_, err = of.scan(func(c Cell) error {
		if unexpected && c.AsExpected || len(c.Anomalies) == 0 {
			return nil
		}
		fmt.Fprintf(b, "\n## %s under %s%s: %s\n", escape(shown(c.Strategy)), escape(shown(c.Scenario)), escape(in(c, s.worlds.names)), escape(names(c.Anomalies)))
		return cellDiagram(b, c, filepath.Dir(of.Results))
	})
	if err != nil {
		return err
	}
	return b.Flush()
}
