package mermaid_test

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/lockfault/lockfault/reports/mermaid"
)

// parse parses a diagram that [mermaid.Diagram.Write] wrote. Any other input is an error.
func parse(text string) (mermaid.Diagram, error) {
	participant := regexp.MustCompile(`^    participant p(\d+) as (.+)$`)
	arrow := regexp.MustCompile(`^    p(\d+)(->>|-->>|-x)p(\d+): (.+)$`)
	note := regexp.MustCompile(`^    Note over p(\d+)(?:,p(\d+))?: (.+)$`)
	var d mermaid.Diagram
	lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	if lines[0] != "sequenceDiagram" {
		return d, fmt.Errorf("mermaid: line 1 is %q, not sequenceDiagram", lines[0])
	}
	for i, line := range lines[1:] {
		var l mermaid.Line
		var err error
		if m := participant.FindStringSubmatch(line); m != nil {
			var name string
			if name, err = unescape(m[2]); err == nil && m[1] != strconv.Itoa(len(d.Participants)) {
				err = fmt.Errorf("participant p%s is out of order", m[1])
			}
			d.Participants = append(d.Participants, name)
		} else if m := arrow.FindStringSubmatch(line); m != nil {
			l.From, _ = strconv.Atoi(m[1])
			l.To, _ = strconv.Atoi(m[3])
			l.Arrow = m[2]
			l.Text, err = unescape(m[4])
			d.Lines = append(d.Lines, l)
		} else if m := note.FindStringSubmatch(line); m != nil {
			l.From, _ = strconv.Atoi(m[1])
			l.To = l.From
			if m[2] != "" {
				l.To, _ = strconv.Atoi(m[2])
			}
			l.Text, err = unescape(m[3])
			d.Lines = append(d.Lines, l)
		} else {
			err = fmt.Errorf("%q is no line of a diagram", line)
		}
		if err == nil && max(l.From, l.To) >= len(d.Participants) {
			err = fmt.Errorf("there is no such participant")
		}
		if err != nil {
			return d, fmt.Errorf("mermaid: line %d: %w", i+2, err)
		}
	}
	return d, nil
}

// unescape reverses the escaping of texts.
func unescape(text string) (string, error) {
	var b strings.Builder
	for text != "" {
		before, rest, found := strings.Cut(text, "#")
		b.WriteString(before)
		if !found {
			break
		}
		number, after, found := strings.Cut(rest, ";")
		n, err := strconv.Atoi(number)
		if !found || err != nil {
			return "", fmt.Errorf("%q is no letter's number", number)
		}
		if n != 8203 {
			b.WriteRune(rune(n))
		}
		text = after
	}
	return b.String(), nil
}
