package reports

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"html/template"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/lockfault/lockfault/checker"
	"github.com/lockfault/lockfault/reports/mermaid"
	"github.com/lockfault/lockfault/reports/page"
	"github.com/lockfault/lockfault/reports/perfetto"
	"github.com/lockfault/lockfault/reports/picture"
	"github.com/lockfault/lockfault/reports/svg"
)

// How many moments the page's pictures have: all stories together have to fit into a file
// that can be mailed.
const (
	momentsOfViolated = 30
	momentsOfHeld     = 8
)

// HTML writes the report of the results in that file, and of the histories below its directory,
// as one HTML file. It reads a few histories at a time, and keeps none.
func HTML(w io.Writer, resultsFile string) error {
	s, err := newSurvey(resultsFile)
	if err != nil {
		return err
	}
	p, err := page.New(w, s.page())
	if err != nil {
		return err
	}
	teller := &storyteller{s, filepath.Dir(resultsFile)}
	told := told{}
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
	if _, err := Scan(resultsFile, func(c Cell) error {
		if c.Verdict == NotApplicable {
			return nil
		}
		done := make(chan drawn, 1)
		go func() {
			story, err := teller.tell(c)
			done <- drawn{story, err}
		}()
		if underway = append(underway, done); len(underway) > 2*runtime.GOMAXPROCS(0) { // one that takes long keeps nobody waiting
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

// told are the stories that were told, by what is in them.
type told map[[sha256.Size]byte]string

// once leaves out of a story what another one has already shown.
func (t told) once(s *page.Story) {
	if s.Timeline == "" {
		return
	}
	sum := sha256.New()
	for _, part := range []string{string(s.Timeline), string(s.Sequence), fmt.Sprint(s.Sentences)} {
		fmt.Fprintf(sum, "%d:%s", len(part), part)
	}
	key := [sha256.Size]byte(sum.Sum(nil))
	first, again := t[key]
	if !again {
		t[key] = s.ID
		return
	}
	s.Same = first
	s.Timeline, s.Sequence, s.Mermaid, s.Sentences = "", "", "", nil
}

// A storyteller makes the stories of a page. It can make several at once.
type storyteller struct {
	*survey
	dir string
}

// tell makes the story of a cell.
func (t *storyteller) tell(c Cell) (page.Story, error) {
	s := page.Story{ID: t.id(c), Name: shown(c.Strategy) + " under " + shown(c.Scenario), World: c.World, Scenario: shown(c.Scenario),
		Verdict: string(c.Verdict), Class: string(c.Verdict), Difference: printed(c.Difference()), HasScript: t.hashes[c.Scenario] != ""}
	if c.World != t.first() {
		s.Name += " in " + shown(c.World)
	}
	if s.Difference != "" {
		s.Class += " differs"
	}
	if len(c.Anomalies) > 0 {
		s.Verdict += ": " + names(c.Anomalies)
	}
	for _, w := range c.Witnesses {
		s.Proofs = append(s.Proofs, page.Proof{Anomaly: string(w.Anomaly), Says: printed(w.Says), Events: w.Events, Avoided: t.avoided(c, w.Anomaly)})
	}
	s.Notes = notes(c)
	s.Command = t.command("trace", c)
	if c.History == "" {
		return s, nil
	}
	h, err := c.historyIn(t.dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		s.Notes = append(s.Notes, "its history is missing: "+printed(c.History))
		return s, nil
	case err != nil:
		return s, err
	}
	return s, t.draw(&s, c, h)
}

// draw puts the pictures into a story.
func (t *storyteller) draw(s *page.Story, c Cell, h checker.History) error {
	most := momentsOfHeld
	if len(c.Anomalies) > 0 || !c.AsExpected {
		most = momentsOfViolated
	}
	pic := Picture(c, h, most)
	pic.Title = "" // the story has one
	if most == momentsOfHeld && len(pic.Sentence) > momentsOfHeld {
		pic.Sentence = pic.Sentence[:momentsOfHeld]
	}
	var timeline, sequence, text bytes.Buffer
	if err := svg.Timeline(&timeline, pic, false); err != nil {
		return err
	}
	if most == momentsOfViolated {
		if err := svg.Sequence(&sequence, pic, false); err != nil {
			return err
		}
		if !c.AsExpected { // what goes into a discussion; of the others by command
			if err := mermaid.Of(pic).Write(&text); err != nil {
				return err
			}
		}
	}
	s.Left, s.Trace = pic.Left.All(), s.Command+" --all"
	proves := map[int]bool{}
	for _, w := range c.Witnesses {
		for _, e := range w.Events {
			proves[e] = true
		}
	}
	for _, sentence := range pic.Sentence {
		s.Sentences = append(s.Sentences, page.Sentence{Event: sentence.Event, Text: sentence.Text, Proves: proves[sentence.Event]})
	}
	s.Timeline, s.Sequence, s.Mermaid = template.HTML(timeline.String()), template.HTML(sequence.String()), text.String()
	return nil
}

// notes are what else is to be said of a cell.
func notes(c Cell) []string {
	var list []string
	if !c.Decided() {
		list = append(list, clipTo(printed(c.Reason), 1000))
	}
	if why := c.Unordered(); why != "" {
		list = append(list, "not linearizable: "+printed(why))
	}
	for _, text := range []string{c.Improvement(), c.Reservation()} {
		if text != "" {
			list = append(list, printed(text))
		}
	}
	for _, m := range c.MetNothing {
		if !m.OrNone {
			list = append(list, printed(m.says(m.Text)))
		}
	}
	return list
}

// DrawCell writes the picture of the cell of that strategy under that scenario, of the first
// world unless one is named, in one of the [Formats].
func DrawCell(w io.Writer, dir, strategy, scenario, world, format string) error {
	found := false
	_, err := Scan(filepath.Join(dir, ResultsFile), func(c Cell) error {
		if found || c.Strategy != strategy || c.Scenario != scenario || world != "" && c.World != world {
			return nil
		}
		found = true
		var h checker.History
		if c.History != "" {
			var err error
			if h, err = c.historyIn(dir); err != nil {
				return err
			}
		}
		return drawAs(w, c, h, format)
	})
	if err == nil && !found {
		err = fmt.Errorf("%w: %s under %s", ErrNoCell, strategy, scenario)
	}
	return err
}

// ErrNoCell says that a report has no such cell.
var ErrNoCell = errors.New("reports: the report has no such cell")

// Formats returns the forms in which one cell can be drawn.
func Formats() []string { return []string{"svg", "sequence", "mermaid", "text", "perfetto"} }

func drawAs(w io.Writer, c Cell, h checker.History, format string) error {
	switch format {
	case "svg":
		return svg.Timeline(w, Picture(c, h, MostMoments), true)
	case "sequence":
		return svg.Sequence(w, Picture(c, h, MostMoments), true)
	case "mermaid":
		return mermaid.Of(Picture(c, h, MostMoments)).Write(w)
	case "text":
		return Story(w, c, h, View{})
	case "perfetto": // a viewer that zooms has room for all
		return perfetto.Write(w, Picture(c, h, len(h.Events)))
	}
	return fmt.Errorf("reports: there is no format %q: there are %s", format, strings.Join(Formats(), ", "))
}

// Rebuild writes report.md and index.html of the results and histories in a directory anew.
func Rebuild(dir string) error {
	results := filepath.Join(dir, ResultsFile)
	// Without a history the page would lose a story that it may have now.
	if _, err := Scan(results, func(c Cell) error {
		if c.History == "" {
			return nil
		}
		_, err := os.Stat(filepath.Join(dir, filepath.FromSlash(c.History)))
		return err
	}); err != nil {
		return err
	}
	if err := checkOurs(dir); err != nil {
		return fmt.Errorf("reports: %w", err)
	}
	return drawAll(dir, results)
}

// drawAll writes all that is drawn of the results.
func drawAll(dir, results string) error {
	if err := writeFile(filepath.Join(dir, MarkdownFile), func(w io.Writer) error { return Markdown(w, results) }); err != nil {
		return err
	}
	return writeFile(filepath.Join(dir, HTMLFile), func(w io.Writer) error { return HTML(w, results) })
}

// id names the story of a cell: by what was played, which stays the same from run to run, unless
// that is nothing to be typed.
func (s *survey) id(c Cell) string {
	id := c.Strategy + "/" + c.Scenario
	if c.World != s.first() {
		id += "@" + c.World
	}
	if strings.Trim(id, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_./@") != "" || len(id) > 200 {
		return fmt.Sprintf("cell-%d", s.at[[3]string{c.World, c.Strategy, c.Scenario}])
	}
	return id
}

// Together returns how long two clients believed at once that they held the lock, in all.
func Together(h checker.History) (all time.Duration) {
	p := &painter{story: newStory(h)}
	p.lay()
	spans := p.overlaps()
	slices.SortFunc(spans, func(a, b picture.Overlap) int { return int(sign(a.From - b.From)) })
	end := time.Duration(0)
	for _, o := range spans { // three at once are counted once
		if from, to := max(o.From, end), o.To; to > from {
			all += to - from
			end = to
		}
	}
	return all
}
