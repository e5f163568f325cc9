package reports

import (
	"encoding/xml"
	"fmt"
	"io"
	"strings"

	"github.com/lockfault/lockfault/internal/printable"
)

var formatJUnit = Format{Name: "junit", Write: JUnit}

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
			if judged := c.judgement(w.Anomaly); judged != "" {
				fmt.Fprintf(&text, "%s\n", shortLine(judged))
			}
		}
		if leak := c.leakText(); leak != "" {
			fmt.Fprintf(&text, "%s\n", shortLine(leak))
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
