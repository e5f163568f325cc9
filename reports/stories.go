package reports

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"html/template"
	"io/fs"

	"github.com/lockfault/lockfault/checker"
	"github.com/lockfault/lockfault/reports/mermaid"
	"github.com/lockfault/lockfault/reports/page"
	"github.com/lockfault/lockfault/reports/svg"
)

// Limits for the moments in the pictures of a page. The page with all its stories must be small
// enough for an e-mail.
const (
	momentsOfViolated = 30
	momentsOfHeld     = 8
)

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

// judged sets the fields of a story that describe the result of the cell.
func judged(s *page.Story, c Cell) {
	s.Verdict, s.Class, s.Difference = outcomeText(c), string(c.Verdict), shortLine(c.Difference())
	if s.Difference != "" {
		s.Class += " differs"
	}
	for _, w := range c.Witnesses {
		s.Proofs = append(s.Proofs, page.Proof{Anomaly: string(w.Anomaly), Text: shortLine(w.Message), Judged: shortLine(c.judgement(w.Anomaly)), Events: w.Events})
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

// notes returns further remarks on a cell.
func notes(c Cell) []string {
	var list []string
	if !c.Decided() {
		list = append(list, clipTo(shortLine(c.Reason), 1000))
	}
	if why := c.Unordered(); why != "" {
		list = append(list, "not linearizable: "+shortLine(why))
	}
	for _, text := range []string{c.Improvement(), c.ByChance(), c.Reservation(), c.leakText()} {
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
