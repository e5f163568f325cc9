package reports

import (
	"fmt"
	"io"

	"github.com/lockfault/lockfault/internal/printable"
)

var formatAnnotations = Format{Name: AnnotationsForm, Write: Annotations, Lines: true}

// Annotations writes a line for each cell that differs from its expectation, followed by the counts
// and by the changes since an earlier run. The lines are workflow commands of GitHub Actions, which
// shows them next to the code: see "Workflow commands for GitHub Actions" in GitHub's
// documentation. The annotation of a cell with a user's script is attached to the script's file.
func Annotations(w io.Writer, of Source) error {
	s, err := newSurvey(of.Results)
	if err != nil {
		return err
	}
	files := map[string]string{}
	for _, script := range s.run.Scripts {
		files[script.Name] = script.File
	}
	b := newText(w)
	for _, c := range s.cells {
		text := c.Difference()
		if text == "" {
			continue
		}
		level := "error"
		if c.Verdict == Unknown {
			level = "warning"
		}
		title := shown(c.Strategy) + " under " + shown(c.Scenario) + in(c, s.worlds.names)
		fmt.Fprintf(b, "::%s title=%s", level, annotated(title, true))
		if file := files[c.Scenario]; file != "" {
			fmt.Fprintf(b, ",file=%s", annotated(clipTo(printable.Line(file), 1000), true))
		}
		fmt.Fprintf(b, "::%s; see %s\n", annotated(shortLine(text), false), annotated(s.command("trace", c), false))
	}
	fmt.Fprintf(b, "::notice title=lockfault::%s\n", annotated(s.all.Tally().String(), false))
	if of.Since != nil {
		of.Since.annotations(b)
	}
	return b.Flush()
}
