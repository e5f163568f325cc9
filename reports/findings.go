package reports

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"

	"github.com/lockfault/lockfault/checker"
	"github.com/lockfault/lockfault/internal/below"
	"github.com/lockfault/lockfault/internal/printable"
	"github.com/lockfault/lockfault/internal/shell"
	"github.com/lockfault/lockfault/reports/page"
)

// Findings are what a search came to, in the words of whoever searched, for a page.
type Findings struct {
	Strategy, Summary string
	// Conclusions say what the result means and what it doesn't, the most important first, and Remarks what else
	// is to be known of it.
	Conclusions, Notes []string
	// Searched says what was searched, Came how much there was of it, and Provenance where that is from: what, and
	// which.
	Searched, Coverage, Provenance [][2]string
	// Worlds are those of real servers that were asked, too.
	Worlds   []string
	List     []Found
	Failures []Failed
}

// A Found is an anomaly with the script that shows it.
type Found struct {
	Anomaly                     checker.Anomaly
	Moves, Requests, ShrunkFrom int
	File, Script                string
	// Said is what each of the worlds said, in their order; empty where one was not asked.
	Said []string
	// Flags are what a command needs beside the strategy and the file to play it again.
	Flags []string
	// Cell is what the script came to when it was played for this page, and History how.
	Cell    Cell
	History checker.History
}

// A Failed is a script that came to nothing.
type Failed struct{ Script, Err string }

// findingsTitle begins the title of a page of findings, by which it is known that a search wrote it.
const findingsTitle = Tool + " explore"

// WriteFindings writes the page of a search, whose stories are those of cells.
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
		row := page.Finding{ID: story.ID, Anomaly: string(x.Anomaly), Means: means(x.Anomaly), Moves: x.Moves, Requests: x.Requests, ShrunkFrom: x.ShrunkFrom, File: shown(x.File)}
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

// story tells what the script came to.
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

// command returns what to type to have the script played again, beside the page.
func (x *Found) command() string {
	words := append([]string{Tool, "trace", x.Cell.Strategy, "./" + x.File}, x.Flags...)
	return strings.Join(each(words, func(w string) string { return shell.Quote(shortLine(w)) }), " ")
}

// means says what an anomaly is.
func means(a checker.Anomaly) string {
	if i := slices.Index(checker.Anomalies(), a); i >= 0 {
		return shorts()[i][1]
	}
	return ""
}

// readable is printed for what may be longer than a sentence, such as a command.
func readable(text string) string { return clipTo(printable.Line(text), 2000) }

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
