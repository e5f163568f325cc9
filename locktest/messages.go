package locktest

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/lockfault/lockfault/checker"
	"github.com/lockfault/lockfault/internal/harness"
	"github.com/lockfault/lockfault/internal/leases"
	"github.com/lockfault/lockfault/reports"
	"github.com/lockfault/lockfault/scenarios"
)

// summary returns the results of all scenarios in one line.
func (test *test) summary() string {
	count := map[reports.Verdict]int{}
	for _, o := range test.played {
		count[o.cell.Verdict]++
	}
	text := fmt.Sprintf("scenarios: %d held, %d showed something, %d not applicable", count[reports.Held], count[reports.Violated], count[reports.NotApplicable])
	if n := count[reports.Error] + count[reports.Unknown]; n > 0 {
		text += fmt.Sprintf(", %d without a verdict", n)
	}
	text += fmt.Sprintf("; the lock is %s", strings.Join(test.cell.Strategy.Tags, ", "))
	for _, o := range test.played {
		if o.cell.Class == "" {
			continue
		}
		text += fmt.Sprintf("; judged as a lock of the class %s", o.cell.Class)
		if _, declared := leases.ClassOf(o.history, leases.LockOf(test.cell.Strategy)); !declared {
			text += " (add the name of another class to Subject.Tags to declare it: docs/leases.md)"
		}
		break
	}
	return text
}

// passed returns the text for a scenario with the expected result.
func passed(cell reports.Cell) string {
	switch {
	case cell.Improvement() != "":
		return fmt.Sprintf("shows %s, and may show %s; %s", list(cell.Anomalies), list(cell.Expected), cell.Improvement())
	case cell.Verdict == reports.Held:
		return "held"
	}
	if cell.ExpectedBy != reports.ByClass {
		return "shows " + list(cell.Anomalies) + ", as it may"
	}
	var parts []string
	for _, kind := range []struct {
		outcome leases.Outcome
		text    string
	}{{leases.Weakness, "avoidable weakness"}, {leases.Limitation, "known limitation"}} {
		var found []checker.Anomaly
		for _, f := range cell.Findings {
			if f.Outcome == kind.outcome {
				found = append(found, f.Anomaly)
			}
		}
		if len(found) > 0 {
			parts = append(parts, fmt.Sprintf("%s of the class %s: %s", kind.text, cell.Class, list(found)))
		}
	}
	return strings.Join(parts, "; ")
}

// failureText returns the reason for a scenario's failure, in a line or two.
func (test *test) failureText(cell reports.Cell, script *scenarios.Script, p promise) string {
	text := fmt.Sprintf("%s shows %s", script.Key(), list(cell.Anomalies))
	switch {
	case cell.ExpectedBy == reports.ByClass:
		return script.Key() + " shows a " + cell.Difference() + "."
	case p.by == survives:
		return text + ", but the test promises that the lock survives it."
	case p.by == accepts:
		return text + fmt.Sprintf(", but the test accepts %s.", list(cell.Expected))
	case cell.ExpectedBy == string(harness.ByFile):
		return text + fmt.Sprintf(", but %s accepts %s.", test.ratchet.file, list(cell.Expected))
	}
	rule := "nothing goes wrong there with a lock that is right"
	if line, ok := script.ExpectOf(cell.Strategy, test.cell.Strategy.Tags); ok && len(line.For) > 0 {
		rule = fmt.Sprintf("what it does excuses %s in locks that are %s (line %d)", list(cell.Expected), names(line.For), line.Line)
	} else if ok && len(cell.Expected) > 0 {
		rule = fmt.Sprintf("what it does excuses %s (line %d)", list(cell.Expected), line.Line)
	}
	which := "which"
	if extra := cell.Extra(); len(extra) < len(cell.Anomalies) {
		which = "and " + list(extra)
	}
	return text + ", " + which + " no fault in it excuses: " + rule + "."
}

// names returns the selectors of a scenario's line as a text.
func names(selectors []scenarios.Selector) string {
	words := make([]string, len(selectors))
	for i, s := range selectors {
		words[i] = string(s)
	}
	return strings.Join(words, " or ")
}

// list returns anomalies as a text.
func list(anomalies []checker.Anomaly) string {
	if len(anomalies) == 0 {
		return "nothing"
	}
	return strings.Join(anomalyNames(anomalies), ", ")
}

func anomalyNames(anomalies []checker.Anomaly) []string {
	list := make([]string, len(anomalies))
	for i, a := range anomalies {
		list[i] = string(a)
	}
	return list
}

// storyLines is the number of lines that a shortened story has before and after the last event of
// the witness.
const storyLines = 12

// story returns the events around the anomaly and the command that shows all events.
func (test *test) story(t *testing.T, cell reports.Cell, h checker.History) string {
	cell.Leak = "" // the test tells it once, at its end
	return test.around(cell, h) + test.reproCommand(t)
}

// around returns the events around the anomaly, or all events if the settings say so.
func (test *test) around(cell reports.Cell, h checker.History) string {
	if test.settings.story {
		return whole(cell, h)
	}
	view := reports.View{}
	for _, w := range cell.Witnesses {
		if slices.Contains(cell.Extra(), w.Anomaly) && len(w.Events) > 0 {
			view.Around = &reports.Neighbourhood{Event: slices.Max(w.Events), Lines: storyLines}
			break
		}
	}
	return storyText(cell, h, view)
}

func whole(cell reports.Cell, h checker.History) string { return storyText(cell, h, reports.View{}) }

func storyText(cell reports.Cell, h checker.History, view reports.View) string {
	var b bytes.Buffer
	_ = reports.Story(&b, cell, h, view) // writing to a buffer cannot fail
	return b.String()
}
