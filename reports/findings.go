package reports

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"

	"github.com/lockfault/lockfault/checker"
	"github.com/lockfault/lockfault/internal/below"
	"github.com/lockfault/lockfault/internal/leases"
	"github.com/lockfault/lockfault/internal/printable"
	"github.com/lockfault/lockfault/internal/shell"
	"github.com/lockfault/lockfault/reports/page"
)

// Findings holds the result of a search for a page, in the words of the caller.
type Findings struct {
	Strategy, Summary string
	// Conclusions states what the result means and what it does not mean, the most important first.
	// Notes holds further remarks.
	Conclusions, Notes []string
	// Searched describes the search, Coverage its extent, and Provenance its origin, each as names
	// and values.
	Searched, Coverage, Provenance [][2]string
	// Worlds names the worlds with real servers in which the findings were played too.
	Worlds   []string
	List     []Found
	Failures []Failed
}

// A Found is an anomaly with the script that shows it.
type Found struct {
	Anomaly                     checker.Anomaly
	Outcome                     leases.Outcome
	Reason                      string
	Moves, Requests, ShrunkFrom int
	File, Script                string
	// Said holds the answer of each world, in the order of Worlds. Said is empty for a world that
	// was not asked.
	Said []string
	// Flags holds the flags that a command needs to repeat the finding, in addition to the strategy
	// and the file.
	Flags []string
	// Cell is the result of the script when it ran for this page, and History is its history.
	Cell    Cell
	History checker.History
}

// A Failed is a script that ended without a result.
type Failed struct{ Script, Err string }

// findingsTitle begins the title of a page of findings. findingsTitle identifies a page that a
// search has written.
const findingsTitle = Tool + " explore"

// WriteFindings writes the page of a search. Its stories have the form of those of cells.
func WriteFindings(w io.Writer, f Findings) error {
	p := page.Findings{
		Title: findingsTitle + " " + shown(f.Strategy), Summary: shortLine(f.Summary), Conclusions: each(f.Conclusions, readable), Notes: each(f.Notes, readable),
		Searched: readablePairs(f.Searched), Coverage: readablePairs(f.Coverage), Provenance: readablePairs(f.Provenance), Worlds: each(f.Worlds, shown),
	}
	for _, x := range f.Failures {
		p.Failures = append(p.Failures, page.Failure{Text: readable(x.Err), Script: printable.Text(x.Script)})
	}
	told := seenStories{}
	for _, x := range f.List {
		story, err := x.story()
		if err != nil {
			return err
		}
		told.once(&story)
		row := page.Finding{ID: story.ID, Anomaly: string(x.Anomaly), Verdict: shortLine(x.Outcome.Words() + ": " + x.Reason), Bug: x.Outcome == leases.Bug, Means: means(x.Anomaly), Moves: x.Moves, Requests: x.Requests, ShrunkFrom: x.ShrunkFrom, File: shown(x.File)}
		for i := range f.Worlds {
			said := page.Said{Text: "not asked"}
			if i < len(x.Said) && x.Said[i] != "" {
				said = page.Said{Text: shortLine(x.Said[i]), Confirmed: strings.HasPrefix(x.Said[i], "confirmed"), Asked: true}
			}
			row.Said = append(row.Said, said)
		}
		p.List, p.Stories = append(p.List, row), append(p.Stories, story)
	}
	return page.OfFindings(w, p)
}

// story returns the story of the script.
func (x *Found) story() (page.Story, error) {
	c := x.Cell
	s := page.Story{
		ID: string(x.Anomaly), Name: fmt.Sprintf("%s, after %s and %s", x.Anomaly, count(x.Moves, "move"), count(x.Requests, "request")), World: c.World,
		Scenario: shown(c.Scenario), Script: printable.Text(x.Script), Command: x.command(),
	}
	judged(&s, c)
	if x.ShrunkFrom > x.Moves {
		s.Notes = append(s.Notes, "shrunk from "+count(x.ShrunkFrom, "move"))
	}
	if len(x.History.Events) == 0 {
		return s, nil
	}
	return s, draw(&s, c, x.History, true)
}

// command returns the command line that repeats the script from the directory of the page.
func (x *Found) command() string {
	words := append([]string{Tool, "trace", x.Cell.Strategy, "./" + x.File}, x.Flags...)
	return shell.Line(each(words, shortLine))
}

// means returns the meaning of an anomaly, or "" if it is unknown.
func means(a checker.Anomaly) string {
	d, _ := checker.Describe(a)
	return d.Meaning
}

func readablePairs(list [][2]string) [][2]string {
	out := make([][2]string, len(list))
	for i, p := range list {
		out[i] = [2]string{shown(p[0]), readable(p[1])}
	}
	return out
}

// CheckFindingsPage returns an error if the directory has a page that no search has written.
func CheckFindingsPage(dir string) error {
	in, err := below.Open(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer in.Close()
	if _, err := in.Lstat(HTMLFile); errors.Is(err, fs.ErrNotExist) || isFindingsPage(in) {
		return nil
	}
	return fmt.Errorf("no search wrote the %s that is in %s: move it away, or name another directory", HTMLFile, dir)
}

// isFindingsPage reports whether a search has written the page in a directory.
func isFindingsPage(in *below.Dir) bool {
	f, err := in.Open(HTMLFile, os.O_RDONLY)
	if err != nil {
		return false
	}
	defer f.Close()
	return contains(f, generator, "<title>"+findingsTitle+" ")
}
