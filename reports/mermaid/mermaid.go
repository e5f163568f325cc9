// Package mermaid converts a picture to the text of a Mermaid sequence diagram, for documents in
// which Mermaid diagrams are drawn. The package does not read Mermaid.
package mermaid

import (
	"bufio"
	"fmt"
	"io"
	"strings"

	"github.com/lockfault/lockfault/reports/diagram"
)

// A Diagram is a sequence diagram.
type Diagram struct {
	Participants []string // names
	Lines        []Line
}

// A Line is an arrow between two participants, or a note over one or two.
type Line struct {
	Arrow    string // one of the constants, or empty for a note
	From, To int    // indices of participants; equal for a note over one
	Text     string
}

// The arrows.
const (
	Asks    = "->>"
	Answers = "-->>"
	Lost    = "-x"
)

// Of returns the diagram of a picture.
func Of(p diagram.Picture) Diagram {
	var d Diagram
	for _, lane := range p.Lanes {
		d.Participants = append(d.Participants, lane.Name)
	}
	if len(d.Participants) == 0 {
		return d
	}
	last := len(d.Participants) - 1
	for _, m := range p.Points {
		text := m.Label
		if m.Effect != "" {
			text += " → " + m.Effect
		}
		line := Line{From: m.From, To: m.To, Text: text}
		switch {
		case m.From < 0 && m.To < 0:
			line.From, line.To = 0, last
		case m.To < 0:
			line.To = m.From
		case m.From < 0:
			line.From = m.To
		case m.Kind == diagram.Reply || m.Kind == diagram.Push:
			line.Arrow = Answers
		case m.Kind == diagram.Dropped || m.Kind == diagram.Stopped:
			line.Arrow = Lost
		default:
			line.Arrow = Asks
		}
		d.Lines = append(d.Lines, line)
		for _, o := range p.Overlaps {
			if m.Kind == diagram.Return && m.At == o.From && m.From == o.B {
				d.Lines = append(d.Lines, Line{From: min(o.A, o.B), To: max(o.A, o.B), Text: o.Label()})
			}
		}
	}
	if n := p.Left.All(); n > 0 {
		d.Lines = append(d.Lines, Line{From: 0, To: last, Text: fmt.Sprintf("%d more left out", n)})
	}
	return d
}

// Write writes the diagram. Any name is safe, since arrows refer to participants as p0, p1 and so
// on.
func (d Diagram) Write(w io.Writer) error {
	b := bufio.NewWriter(w)
	b.WriteString("sequenceDiagram\n")
	for i, name := range d.Participants {
		fmt.Fprintf(b, "    participant p%d as %s\n", i, escape(name))
	}
	for _, l := range d.Lines {
		switch {
		case l.Arrow != "":
			fmt.Fprintf(b, "    p%d%sp%d: %s\n", l.From, l.Arrow, l.To, escape(l.Text))
		case l.From == l.To:
			fmt.Fprintf(b, "    Note over p%d: %s\n", l.From, escape(l.Text))
		default:
			fmt.Fprintf(b, "    Note over p%d,p%d: %s\n", l.From, l.To, escape(l.Text))
		}
	}
	return b.Flush()
}

// escape replaces characters that are special in Mermaid, or in the HTML that it makes, by their
// codes. A text that is empty, "end" or has outer space is enclosed in invisible characters, since
// a line must have a text.
func escape(text string) string {
	var b strings.Builder
	for _, r := range text {
		if strings.ContainsRune("#;<>&\"`{}%\\\u2028\u2029", r) || r < ' ' || r == 0x7f {
			fmt.Fprintf(&b, "#%d;", r)
		} else {
			b.WriteRune(r)
		}
	}
	text = b.String()
	if trimmed := strings.TrimSpace(text); trimmed == "" || strings.EqualFold(trimmed, "end") || trimmed != text {
		text = "#8203;" + text + "#8203;" // zero-width space
	}
	return text
}
