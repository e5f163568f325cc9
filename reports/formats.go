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

// A Format is a form in which all of a report can be written.
type Format struct {
	Name  string
	Write func(w io.Writer, of Source) error
	// Lines says that it is lines among which others may stand, and no document.
	Lines bool
}

// A Source is what a form is written of.
type Source struct {
	// Results is the file of the results. Histories are read below its directory, as far as the
	// form needs any.
	Results string
	// Since is what changed since a run before, nil if it was compared with none.
	Since *Diff
	// Err returns an error once the writing shall end, such as [context.Context.Err] does. The writing
	// asks before each cell. If Err is nil, nothing ends the writing.
	Err func() error
}

// scan is [Scan] of the results, until the writing shall end.
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

// Forms returns the forms.
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

// results copies them: each string has the same value.
func results(w io.Writer, of Source) error {
	f, err := openBeside(of.Results, input.Stream)
	if err != nil {
		return fmt.Errorf("reports: %w", err)
	}
	defer f.Close()
	_, err = io.Copy(printable.NewJSONWriter(w), f)
	return err
}

// WriteFile writes a form into a file, which is there as a whole or not at all. What is no regular
// file, a device or a pipe, is written into; of a symbolic link that goes for what it leads to.
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

// writeInto writes into what is there.
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

// IsPartOfReport reports whether a file is one of those that a report in that directory has.
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

// AnnotationsForm is the name of the form that [Annotations] writes.
const AnnotationsForm = "github"

// Annotations writes a line for each cell that is not as expected, in the form in which GitHub's
// workflows take what they show beside the code: its documentation, "Workflow commands for GitHub
// Actions", says how. A cell of a user's script stands beside that. Behind them is what changed
// since a run before.
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

// annotated escapes what is in an annotation, or in one of its properties.
func annotated(text string, property bool) string {
	text = strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A").Replace(text)
	if property {
		text = strings.NewReplacer(":", "%3A", ",", "%2C").Replace(text)
	}
	return text
}

// Diagrams writes the sequence diagram of each cell that is not as expected, or if all are, of each
// that showed an anomaly, as Mermaid in Markdown.
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

// diagram writes the sequence diagram of a cell, if it has a history, as a block of Markdown.
func cellDiagram(b *bufio.Writer, c Cell, dir string) error {
	if c.History == "" {
		return nil
	}
	h, err := c.historyIn(dir)
	if errors.Is(err, fs.ErrNotExist) { // results alone can be kept
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

// The elements of JUnit's form, as far as they are used here.
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

// JUnit writes the cells as test cases in the XML that JUnit's reports have, one test suite for each
// strategy in a world: a cell that is not as expected is a failure, one without an answer an
// error, one that does not apply is skipped. What got worse since a run before is a failure, and
// what has no answer any more an error, whatever was expected. It keeps a few lines of each cell.
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

// add adds a cell, which became something since a run before if that was compared.
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
