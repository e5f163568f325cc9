package scenarios

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"github.com/lockfault/lockfault/faults"
)

// Format returns the script in canonical form. Settings, steps and expects keep their original
// order, and comments their places. One blank separates words, and there is at most one blank line
// in a row. Parsing the result returns the same script except for line numbers. A script without a
// text has the non-default settings, the steps, and the expects.
func (s *Script) Format() []byte {
	var p printer
	for _, doc := range s.Doc {
		p.comment(doc)
	}
	p.paragraph()
	for _, setting := range s.settingLines() {
		p.line(s.layout.notes[setting.line], setting.text, "")
	}
	p.paragraph()
	expects := s.Expects
	for _, group := range grouped(s.Steps) {
		// An expect that precedes the step in the text stays before it.
		for len(expects) > 0 && expects[0].Line > 0 && expects[0].Line < group.line {
			p.expect(s.layout.notes[expects[0].Line], expects[0])
			expects = expects[1:]
		}
		p.line(s.layout.notes[group.line], group.text, "")
	}
	if len(expects) > 0 {
		p.paragraph()
	}
	for _, e := range expects {
		p.expect(s.layout.notes[e.Line], e)
	}
	p.lines(s.layout.tail)
	return p.Bytes()
}

// printer writes the lines of a script.
type printer struct {
	bytes.Buffer
	open bool // the previous line is not blank
}

// paragraph makes the next line begin a new paragraph.
func (p *printer) paragraph() {
	if p.open {
		p.WriteByte('\n')
	}
	p.open = false
}

// lines writes formatted lines; "" is a blank line.
func (p *printer) lines(lines []string) {
	for _, line := range lines {
		if line == "" {
			p.paragraph()
			continue
		}
		p.WriteString(line)
		p.WriteByte('\n')
		p.open = true
	}
}

func (p *printer) comment(text string) {
	for _, line := range strings.Split(text, "\n") {
		p.lines([]string{comment(strings.TrimRight(line, " \t\r"))})
	}
}

// line writes the comments before a line, the line, and the comment after it: the note's comment,
// unless trailing is set.
func (p *printer) line(n note, text, trailing string) {
	p.lines(n.above)
	if n.written != "" && n.filled == text {
		text = n.written
	}
	if trailing == "" {
		trailing = n.trailing
	}
	if trailing != "" {
		text += "  " + comment(trailing)
	}
	p.lines([]string{text})
}

func (p *printer) expect(n note, e Expect) {
	n.trailing = ""
	p.line(n, e.String(), oneBlank(e.Reason))
}

// oneBlank replaces each sequence of white space with one blank and trims both ends.
func oneBlank(text string) string { return strings.Join(strings.Fields(text), " ") }

// stepGroup holds the steps of one line.
type stepGroup struct {
	line int
	text string
}

// grouped combines the faults that one line applied to several clients or nodes into one line.
func grouped(steps []Step) []stepGroup {
	var groups []stepGroup
	for i := 0; i < len(steps); {
		subject, rest := splitFault(steps[i].Do)
		subjects := []string{subject}
		first := i
		for i++; i < len(steps) && subject != "" && steps[first].Line > 0; i++ {
			other, same := splitFault(steps[i].Do)
			if steps[i].Line != steps[first].Line || same != rest || isNode(other) != isNode(subject) || slices.Contains(subjects, other) {
				break
			}
			subjects = append(subjects, other)
		}
		text := steps[first].Do.String()
		if len(subjects) > 1 {
			text = strings.Join(subjects, " ") + " " + rest
		}
		groups = append(groups, stepGroup{steps[first].Line, text})
	}
	return groups
}

// splitFault splits the text of a client or node fault into its subject and the rest. The subject is
// empty for any other action.
func splitFault(action Action) (subject, rest string) {
	inject, ok := action.(Inject)
	if !ok {
		return "", ""
	}
	subject, rest, _ = strings.Cut(inject.String(), " ")
	if !isClient(subject) && !isNode(subject) {
		return "", ""
	}
	return subject, rest
}

// settingLine is one setting as text.
type settingLine struct {
	placed
	text      string
	byDefault bool
}

// settingLines returns the settings to write: first those of the text in their order, then the
// others that differ from the defaults.
func (s *Script) settingLines() []settingLine {
	all := s.Settings.lines()
	var lines []settingLine
	for _, written := range s.layout.settings {
		i := slices.IndexFunc(all, func(l settingLine) bool { return l.key == written.key })
		if i < 0 {
			continue
		}
		all[i].line = written.line
		lines = append(lines, all[i])
		all = slices.Delete(all, i, i+1)
	}
	for _, l := range all {
		if !l.byDefault {
			lines = append(lines, l)
		}
	}
	return lines
}

// lines returns all settings as text, in canonical order.
func (s Settings) lines() []settingLine {
	base := Defaults()
	var lines []settingLine
	add := func(key string, value any, byDefault bool) {
		lines = append(lines, settingLine{placed{key: key}, fmt.Sprint(key, " ", value), byDefault})
	}
	for _, p := range s.Params {
		lines = append(lines, settingLine{placed: placed{key: "param " + p.Name}, text: "param " + p.String()})
	}
	add("ttl", faults.Span{Abs: s.TTL}, s.TTL == base.TTL)
	add("clients", strings.Join(s.Clients, " "), false)
	add("nodes", s.Nodes, s.Nodes == base.Nodes)
	add("replicas", s.Replicas, s.Replicas == base.Replicas)
	if len(s.For) > 0 {
		add("for", joined(s.For), false)
	}
	if len(s.Elsewhere) > 0 {
		add("elsewhere", joined(s.Elsewhere), false)
	}
	add("grace", s.Grace, s.Grace == base.Grace)
	add("bound", s.Bound, s.Bound == base.Bound)
	add("patience", s.Patience, s.Patience == base.Patience)
	add("retries", s.Retries, s.Retries == base.Retries)
	add("read-timeout", s.ReadTimeout, s.ReadTimeout == base.ReadTimeout)
	if s.IgnoreContext {
		add("context-timeout", "off", false)
	} else {
		add("context-timeout", "on", true)
	}
	if s.HonourValidity {
		add("honour", "validity", false)
	}
	return append(lines, s.threadLines()...)
}

// threadLines returns a line for each thread id, in the order of its first client.
func (s Settings) threadLines() []settingLine {
	var lines []settingLine
	for _, client := range s.Clients {
		id, ok := s.Threads[client]
		if !ok {
			continue
		}
		key := "thread " + id
		i := slices.IndexFunc(lines, func(l settingLine) bool { return l.key == key })
		if i < 0 {
			lines = append(lines, settingLine{placed: placed{key: key}, text: key})
			i = len(lines) - 1
		}
		lines[i].text += " " + client
	}
	return lines
}
