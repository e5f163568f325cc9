package reports

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"html/template"
	"io"
	"io/fs"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/lockfault/lockfault/checker"
	"github.com/lockfault/lockfault/internal/atomicdir"
	"github.com/lockfault/lockfault/internal/below"
	"github.com/lockfault/lockfault/internal/flock"
	"github.com/lockfault/lockfault/internal/input"
	"github.com/lockfault/lockfault/internal/printable"
	"github.com/lockfault/lockfault/reports/mermaid"
	"github.com/lockfault/lockfault/reports/page"
	"github.com/lockfault/lockfault/reports/perfetto"
	"github.com/lockfault/lockfault/reports/svg"
)

// Limits for the moments in the pictures of a page. The page with all its stories must be small
// enough for an e-mail.
const (
	momentsOfViolated = 30
	momentsOfHeld     = 8
)

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

// seenStories maps the content of each story that was written to its ID.
type seenStories map[[sha256.Size]byte]string

// once removes the pictures and sentences of a story that an earlier story has already shown, and
// sets Same instead.
func (t seenStories) once(s *page.Story) {
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

// judged sets the fields of a story that describe the result of the cell.
func judged(s *page.Story, c Cell) {
	s.Verdict, s.Class, s.Difference = outcomeText(c), string(c.Verdict), shortLine(c.Difference())
	if s.Difference != "" {
		s.Class += " differs"
	}
	for _, w := range c.Witnesses {
		s.Proofs = append(s.Proofs, page.Proof{Anomaly: string(w.Anomaly), Text: shortLine(w.Message), Events: w.Events})
	}
	s.Notes = notes(c)
}

// draw adds the pictures to a story, including the Mermaid text if discussed is true.
func draw(s *page.Story, c Cell, h checker.History, discussed bool) error {
	most := momentsOfHeld
	if len(c.Anomalies) > 0 || !c.AsExpected {
		most = momentsOfViolated
	}
	pic := Picture(c, h, most)
	pic.Title = "" // the story has its own title
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
		if discussed {
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

// notes returns further remarks on a cell.
func notes(c Cell) []string {
	var list []string
	if !c.Decided() {
		list = append(list, clipTo(shortLine(c.Reason), 1000))
	}
	if why := c.Unordered(); why != "" {
		list = append(list, "not linearizable: "+shortLine(why))
	}
	for _, text := range []string{c.Improvement(), c.ByChance(), c.Reservation()} {
		if text != "" {
			list = append(list, shortLine(text))
		}
	}
	for i, why := range c.Late {
		list = append(list, fmt.Sprintf("attempt %d was not judged: %s", i+1, clipTo(shortLine(why), 200)))
	}
	if n := len(c.Late); n > 0 {
		list = append(list, fmt.Sprintf("attempt %d, with a lease of %v, is this one", n+1, c.Lease))
	}
	if c.Twin != nil {
		list = append(list, "with that lease "+Reference+" showed: "+cellSays(Cell{Verdict: c.Twin.Verdict, Anomalies: c.Twin.Anomalies}))
	}
	for _, m := range c.MetNothing {
		if !m.OrNone {
			list = append(list, shortLine(m.text(m.Text)))
		}
	}
	return list
}

// DrawCell writes the picture of a cell in one of the [Formats]. The report is in dir. If world is
// empty, DrawCell takes the first world with the cell. The error is [ErrNoCell] if the report has
// no such cell.
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

// ErrNoCell reports that a report has no such cell.
var ErrNoCell = errors.New("reports: the report has no such cell")

// Formats returns the formats in which a cell can be drawn.
func Formats() []string { return []string{"svg", "sequence", "mermaid", "text", "perfetto"} }

func drawAs(w io.Writer, c Cell, h checker.History, format string) error {
	if format != "perfetto" {
		w = printable.NewWriter(w)
	}
	switch format {
	case "svg":
		return svg.Timeline(w, Picture(c, h, MostMoments), true)
	case "sequence":
		return svg.Sequence(w, Picture(c, h, MostMoments), true)
	case "mermaid":
		return mermaid.Of(Picture(c, h, MostMoments)).Write(w)
	case "text":
		return Story(w, c, h, View{})
	case "perfetto": // a viewer with zoom can show all moments
		return perfetto.Write(printable.NewJSONWriter(w), Picture(c, h, len(h.Events)))
	}
	return fmt.Errorf("reports: there is no format %q: there are %s", format, strings.Join(Formats(), ", "))
}

// Rebuild rewrites report.md and index.html from the results and histories in a directory. Rebuild
// stops with an error when the context ends.
func Rebuild(ctx context.Context, dir string) error {
	of := Source{Results: filepath.Join(dir, ResultsFile), Err: ctx.Err}
	// Without its history, a story that the old page may have would get lost.
	if _, err := of.scan(func(c Cell) error {
		if c.History == "" {
			return nil
		}
		f, err := openBelow(dir, c.History, input.History)
		if err != nil {
			return err
		}
		return f.Close()
	}); err != nil {
		return err
	}
	in, err := settled(dir)
	if err == nil {
		defer in.Close()
		err = checkOurs(in)
	}
	if err != nil {
		return fmt.Errorf("reports: %w", err)
	}
	atomicdir.Sweep(in)
	return drawAll(in, ".", ctx.Err)
}

// settled opens a report's directory. settled first completes a replacement that a killed run has
// left unfinished.
func settled(dir string) (*below.Dir, error) {
	in, err := below.Open(dir)
	if err != nil || !placeIn(in).Unsettled() {
		return in, err
	}
	r, err := take(dir)
	if errors.Is(err, flock.ErrTaken) {
		err = fmt.Errorf("a run is writing to %s: wait for its end", dir)
	}
	if err != nil {
		return nil, errors.Join(err, in.Close())
	}
	r.Leave()
	return in, nil
}

// drawAll writes the Markdown and HTML files of the results in a directory below in. drawAll stops
// with the error of until, which may be nil.
func drawAll(in *below.Dir, dir string, until func() error) error {
	of := Source{Results: in.Join(filepath.Join(dir, ResultsFile)), Err: until}
	if err := atomicdir.InUnsynced(in, filepath.Join(dir, MarkdownFile), func(w io.Writer) error { return Markdown(w, of) }); err != nil {
		return err
	}
	return atomicdir.InUnsynced(in, filepath.Join(dir, HTMLFile), func(w io.Writer) error { return HTML(w, of) })
}

// id returns the ID of a cell's story. id consists of the cell's names, which stay the same from
// run to run, unless they have unusual characters or are too long.
func (s *aggregate) id(c Cell) string {
	id := c.Strategy + "/" + c.Scenario
	if c.World != s.first() {
		id += "@" + c.World
	}
	if strings.Trim(id, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_./@") != "" || len(id) > 200 {
		return fmt.Sprintf("cell-%d", s.at[[3]string{c.World, c.Strategy, c.Scenario}])
	}
	return id
}

// Together returns the total time in which at least two clients believed that they held the lock.
func Together(h checker.History) (all time.Duration) {
	end := time.Duration(0)              // end of the counted time
	longest := time.Duration(0)          // latest end of a hold so far
	for i, b := range checker.Holds(h) { // by start; holds of a client are disjoint
		if from, to := max(b.Start, end), min(b.End, longest); i > 0 && to > from { // count overlaps of 3 once
			all += to - from
			end = to
		}
		longest = max(longest, b.End)
	}
	return all
}
