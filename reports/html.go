package reports

import (
	"errors"
	"io"
	"io/fs"
	"path/filepath"
	"runtime"

	"github.com/lockfault/lockfault/internal/printable"
	"github.com/lockfault/lockfault/reports/page"
)

var formatHTML = Format{Name: "html", Write: HTML}

// HTML writes the report as one HTML file. HTML reads a few histories at a time, concurrently, and
// keeps none.
func HTML(w io.Writer, of Source) error {
	s, err := newSurvey(of.Results)
	if err != nil {
		return err
	}
	head := s.page()
	if of.Since != nil {
		head.Since = of.Since.page()
	}
	p, err := page.New(printable.NewWriter(w), head)
	if err != nil {
		return err
	}
	teller := &storyteller{s, filepath.Dir(of.Results)}
	told := seenStories{}
	type drawn struct {
		story page.Story
		err   error
	}
	var underway []chan drawn // in the order of the cells
	write := func() error {
		d := <-underway[0]
		underway = underway[1:]
		if d.err != nil {
			return d.err
		}
		told.once(&d.story)
		return p.Story(d.story)
	}
	if _, err := of.scan(func(c Cell) error {
		if c.Verdict == NotApplicable {
			return nil
		}
		done := make(chan drawn, 1)
		go func() {
			story, err := teller.story(c)
			done <- drawn{story, err}
		}()
		if underway = append(underway, done); len(underway) > 2*runtime.GOMAXPROCS(0) { // so that a slow cell does not block the others
			return write()
		}
		return nil
	}); err != nil {
		return err
	}
	for len(underway) > 0 {
		if err := write(); err != nil {
			return err
		}
	}
	return p.Close()
}

// A storyteller makes the stories of a page. A storyteller is safe for concurrent use.
type storyteller struct {
	*aggregate
	dir string
}

// story returns the story of a cell.
func (t *storyteller) story(c Cell) (page.Story, error) {
	s := page.Story{ID: t.id(c), Name: shown(c.Strategy) + " under " + shown(c.Scenario) + t.elsewhere(c), World: c.World, Scenario: shown(c.Scenario), HasScript: t.hashes[c.Scenario] != ""}
	for _, world := range t.worlds.names {
		if other, ok := t.cell(world, c.Strategy, c.Scenario); ok && world != c.World && other.Verdict != NotApplicable {
			s.Elsewhere = append(s.Elsewhere, page.Link{ID: t.id(other), Text: shown(world), Summary: outcomeText(other)})
		}
	}
	judged(&s, c)
	for i := range s.Proofs {
		s.Proofs[i].Avoided = t.avoided(c, c.Witnesses[i].Anomaly)
	}
	s.Command = t.command("trace", c)
	if c.History == "" {
		return s, nil
	}
	h, err := c.historyIn(t.dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		s.Notes = append(s.Notes, "its history is missing: "+shortLine(c.History))
		return s, nil
	case err != nil:
		return s, err
	}
	return s, draw(&s, c, h, !c.AsExpected) // a command draws Mermaid for other cells
}
