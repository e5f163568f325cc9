package reports

import (
	"bufio"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/lockfault/lockfault/internal/atomicdir"
	"github.com/lockfault/lockfault/internal/input"
	"github.com/lockfault/lockfault/internal/printable"
	"github.com/lockfault/lockfault/reports/mermaid"
)

// A Format is a format in which a whole report can be written.
type Format struct {
	Name  string
	Write func(w io.Writer, of Source) error
	// Lines reports whether the output consists of independent lines, to which other lines may be
	// added, instead of a document.
	Lines bool
}

// A Source holds the input of a [Format].
type Source struct {
	// Results is the path of the results file. Formats that need histories read them below its
	// directory.
	Results string
	// Since holds the changes since an earlier run. Since is nil if the run was not compared.
	Since *Diff
	// Err returns an error if the writing must stop, as [context.Context.Err] does. Err is called
	// before each cell. If Err is nil, the writing does not stop early.
	Err func() error
}

// scan calls [Scan] on the results, and stops with the error of Err.
func (of Source) scan(visit func(Cell) error) (Head, error) {
	return Scan(of.Results, func(c Cell) error {
		if of.Err != nil {
			if err := of.Err(); err != nil {
				return err
			}
		}
		return visit(c)
	})
}

// Forms returns the supported formats.
func Forms() []Format {
	return []Format{
		{Name: "html", Write: HTML},
		{Name: "markdown", Write: Markdown},
		{Name: "json", Write: results},
		{Name: "junit", Write: JUnit},
		{Name: "mermaid", Write: Diagrams},
		{Name: AnnotationsForm, Write: Annotations, Lines: true},
	}
}

// results copies the results file. Characters that act on a terminal are escaped, so that each
// string keeps its value.
func results(w io.Writer, of Source) error {
	f, err := openBeside(of.Results, input.Stream)
	if err != nil {
		return fmt.Errorf("reports: %w", err)
	}
	defer f.Close()
	_, err = io.Copy(printable.NewJSONWriter(w), f)
	return err
}

// WriteFile writes the report to a file, either completely or not at all. A device or a pipe is
// written to directly, also if the name is a symbolic link to one.
func (f Format) WriteFile(name string, of Source) error {
	write := func(w io.Writer) error { return f.Write(w, of) }
	var err error
	if info, there := os.Stat(name); there == nil && !info.Mode().IsRegular() {
		err = writeInto(name, write)
	} else {
		err = atomicdir.Stream(name, write)
	}
	if err != nil {
		return fmt.Errorf("reports: write %s: %w", f.Name, err)
	}
	return nil
}

// writeInto writes to an existing file.
func writeInto(path string, write func(io.Writer) error) error {
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	b := bufio.NewWriterSize(f, 64<<10)
	err = write(b)
	if err == nil {
		err = b.Flush()
	}
	return errors.Join(err, f.Close())
}

// IsPartOfReport reports whether a path has the name of a file or directory, or lies in a
// directory, that a report in dir has.
func IsPartOfReport(dir, file string) bool {
	at, err := filepath.Abs(dir)
	if err != nil {
		return false
	}
	path, err := filepath.Abs(file)
	if err != nil {
		return false
	}
	below, err := filepath.Rel(at, path)
	if err != nil {
		return false
	}
	first, _, _ := strings.Cut(filepath.ToSlash(below), "/")
	return slices.Contains(append(entries(), WorkDir), first)
}

// AnnotationsForm is the name of the format that [Annotations] writes.
const AnnotationsForm = "github"

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

// annotated escapes the text of an annotation, or of one of its properties.
func annotated(text string, property bool) string {
	text = strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A").Replace(text)
	if property {
		text = strings.NewReplacer(":", "%3A", ",", "%2C").Replace(text)
	}
	return text
}

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

// cellDiagram writes the sequence diagram of a cell as a Markdown block. cellDiagram writes nothing
// if the cell has no history.
func cellDiagram(b *bufio.Writer, c Cell, dir string) error {
	if c.History == "" {
		return nil
	}
	h, err := c.historyIn(dir)
	if errors.Is(err, fs.ErrNotExist) { // a user may keep the results without the histories
		return nil
	}
	if err != nil {
		return err
	}
	b.WriteString("\n```mermaid\n")
	if err := mermaid.Of(Picture(c, h, momentsOfViolated)).Write(b); err != nil {
		return err
	}
	b.WriteString("```\n")
	return nil
}

// The elements of the JUnit format that are used here.
type (
	junitSuites struct {
		XMLName  xml.Name     `xml:"testsuites"`
		Name     string       `xml:"name,attr"`
		Tests    int          `xml:"tests,attr"`
		Failures int          `xml:"failures,attr"`
		Errors   int          `xml:"errors,attr"`
		Time     string       `xml:"time,attr"`
		Suites   []junitSuite `xml:"testsuite"`
	}
	junitSuite struct {
		Name     string      `xml:"name,attr"`
		Tests    int         `xml:"tests,attr"`
		Failures int         `xml:"failures,attr"`
		Errors   int         `xml:"errors,attr"`
		Skipped  int         `xml:"skipped,attr"`
		Time     string      `xml:"time,attr"`
		Cases    []junitCase `xml:"testcase"`
		seconds  float64
	}
	junitCase struct {
		Name    string    `xml:"name,attr"`
		Class   string    `xml:"classname,attr"`
		Time    string    `xml:"time,attr"`
		Skipped *junitWhy `xml:"skipped"`
		Error   *junitWhy `xml:"error"`
		Failure *junitWhy `xml:"failure"`
		Out     string    `xml:"system-out,omitempty"`
	}
	junitWhy struct {
		Message string `xml:"message,attr"`
		Type    string `xml:"type,attr,omitempty"`
		Text    string `xml:",chardata"`
	}
)

// JUnit writes the cells as test cases in JUnit's XML format, with a test suite for each strategy
// in each world. A cell that differs from its expectation is a failure, an undecided cell an error,
// and a not-applicable cell is skipped. If the run was compared with an earlier one, a cell that
// got worse is also a failure, whatever its expectation. JUnit keeps a few lines of each cell in
// memory.
func JUnit(w io.Writer, of Source) error {
	s, err := newSurvey(of.Results)
	if err != nil {
		return err
	}
	suites := map[[2]string]*junitSuite{}
	if _, err := of.scan(func(c Cell) error {
		key := [2]string{c.World, c.Strategy}
		suite := suites[key]
		if suite == nil {
			suite = &junitSuite{Name: shown(c.Strategy) + in(c, s.worlds.names)}
			suites[key] = suite
		}
		suite.add(c, s.command("trace", c), of.Since.of(c))
		return nil
	}); err != nil {
		return err
	}
	all := junitSuites{Name: Tool}
	seconds := 0.0
	for _, world := range s.worlds.names {
		for _, strategy := range s.strategies.names {
			suite := suites[[2]string{world, strategy}]
			if suite == nil {
				continue
			}
			suite.Time = junitTime(suite.seconds)
			all.Suites = append(all.Suites, *suite)
			all.Tests, all.Failures, all.Errors = all.Tests+suite.Tests, all.Failures+suite.Failures, all.Errors+suite.Errors
			seconds += suite.seconds
		}
	}
	all.Time = junitTime(seconds)
	if _, err := io.WriteString(w, xml.Header); err != nil {
		return err
	}
	e := xml.NewEncoder(printable.NewWriter(w))
	e.Indent("", "  ")
	if err := e.Encode(all); err != nil {
		return err
	}
	_, err = io.WriteString(w, "\n")
	return err
}

// add adds a cell with its change since an earlier run, which is zero without a comparison.
func (s *junitSuite) add(c Cell, command string, since Change) {
	t := junitCase{Name: shown(c.Scenario), Class: s.Name, Time: junitTime(c.Elapsed.Seconds())}
	message := shortLine(c.Difference())
	if alarm := since.alarm(); message == "" {
		message = alarm
	} else if alarm != "" {
		message += "; " + alarm
	}
	why := &junitWhy{Message: message, Type: string(c.Verdict)}
	switch {
	case c.Verdict == NotApplicable:
		t.Skipped = &junitWhy{Message: shortLine(c.Reason)}
		s.Skipped++
	case !c.Decided():
		t.Error, why.Text = why, printable.Text(clipTo(c.Reason, 10_000))
		s.Errors++
	default:
		var text strings.Builder
		for _, w := range c.Witnesses {
			fmt.Fprintf(&text, "%s: %s Events %s.\n", w.Anomaly, shortLine(w.Message), list(w.Events))
		}
		fmt.Fprintf(&text, "%s\n", command)
		if c.AsExpected && since.Become != Worse {
			t.Out = cellSays(c) + "\n" + text.String()
		} else {
			t.Failure, why.Text = why, text.String()
			s.Failures++
		}
	}
	s.Tests++
	s.seconds += c.Elapsed.Seconds()
	s.Cases = append(s.Cases, t)
}

func junitTime(seconds float64) string { return fmt.Sprintf("%.6f", seconds) }
