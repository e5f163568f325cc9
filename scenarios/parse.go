package scenarios

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/lockfault/lockfault/checker"
	"github.com/lockfault/lockfault/internal/printable"
)

// Parse parses a script. The name is the file's name or path; its base name without ".txt" becomes
// the script's name. An invalid script returns a [*SyntaxError] for its first error. docs/script.md
// describes the language.
func Parse(name string, src []byte) (*Script, error) {
	if base := filepath.Base(name); !printable.IsLine(base) { // a cell has this name in JSON files
		return nil, &SyntaxError{File: name, Line: 1, Column: 1,
			Message: fmt.Sprintf("invalid file name %q: must be UTF-8 without control characters: rename the file", base)}
	}
	lines, err := lex(name, "script", src)
	if err != nil {
		return nil, err
	}
	p := parser{
		file: name,
		script: &Script{
			Name:     strings.TrimSuffix(filepath.Base(name), ".txt"),
			Settings: Defaults(),
			layout:   layout{file: name, notes: map[int]note{}},
		},
		given: map[string]int{},
		past:  newPast(),
		head:  true,
	}
	for _, l := range lines {
		if err := p.line(l); err != nil {
			return nil, err
		}
	}
	if err := p.finish(len(lines)); err != nil {
		return nil, err
	}
	return p.script, nil
}

// parser parses one script, line by line.
type parser struct {
	file   string
	script *Script
	given  map[string]int // the settings so far with their lines, see placed
	past   validator
	head   bool     // the current line may belong to the head comment
	begun  bool     // the settings have ended
	above  []string // comments and blank lines that belong to the next line

	target   string // the name of the target of the fault that is parsed
	anyNames bool   // names need not be declared
}

// line parses one line of any kind.
func (p *parser) line(l line) error {
	if len(l.words) == 0 {
		p.keepComment(l)
		return nil
	}
	p.head = false
	written, err := p.fill(&l)
	if err != nil {
		return err
	}
	c := &cursor{file: p.file, line: l}
	switch word := c.peek(); {
	case word == "expect":
		err = p.expect(c)
	case slices.Contains(settingWords(), word):
		err = p.setting(c)
	default:
		err = p.step(c)
	}
	if err != nil {
		return err
	}
	n := note{above: p.above, trailing: l.comment, written: written}
	if p.above = nil; len(n.above) > 0 || n.trailing != "" || written != "" {
		p.script.layout.notes[l.number] = n
	}
	return nil
}

// keepComment stores a comment or a blank line.
func (p *parser) keepComment(l line) {
	switch {
	case !l.commented:
		p.head = p.head && len(p.script.Doc) == 0
		if n := len(p.above); !p.head && (n == 0 || p.above[n-1] != "") {
			p.above = append(p.above, "")
		}
	case p.head:
		p.script.Doc = append(p.script.Doc, l.comment)
	default:
		p.above = append(p.above, comment(l.comment))
	}
}

// step parses a line with a step.
func (p *parser) step(c *cursor) error {
	words := func() []string { // computed only for errors
		words := append(stepWords(), "expect")
		if !p.begun {
			words = append(words, settingWords()...)
		}
		return words
	}
	first := c.peek()
	if !slices.Contains(p.script.Clients, first) && isClient(first) {
		if meant, ok := inSmallLetters(first, words()); ok {
			return c.wrong(c.next(), "no line begins with %q: words are written in small letters", meant)
		}
	}
	if !isStep(first) {
		words := append(append(words(), p.script.Clients...), nodeNames(p.script.Nodes)...)
		return c.wrong(c.next(), "no line begins with %q", words...)
	}
	if err := p.begin(c); err != nil {
		return err
	}
	actions, err := p.statement(c)
	if err != nil {
		return err
	}
	if err := c.done(); err != nil {
		return err
	}
	for _, action := range actions {
		if err := p.past.follow(c, action); err != nil {
			return err
		}
		p.script.Steps = append(p.script.Steps, Step{Line: c.number, Do: action})
	}
	return nil
}

// expect parses an expect line.
func (p *parser) expect(c *cursor) error {
	if err := p.begin(c); err != nil {
		return err
	}
	c.next()
	e := Expect{Line: c.number, Reason: oneBlank(c.comment)}
	colon := slices.IndexFunc(c.words, func(w word) bool { return strings.HasSuffix(w.text, ":") })
	for c.at <= colon {
		// The colon may be separated from the last selector by a blank.
		w := c.next()
		text := w.text
		if c.at == colon+1 {
			if text = strings.TrimSuffix(text, ":"); text == "" && len(e.For) > 0 {
				break
			}
		}
		s, err := p.selector(c, w, text)
		if err != nil {
			return err
		}
		e.For = append(e.For, s)
	}
	var err error
	if e.Anomalies, err = anomalies(c); err != nil {
		return err
	}
	p.script.Expects = append(p.script.Expects, e)
	return nil
}

// anomalies parses the rest of a line: a list of anomalies, or none.
func anomalies(c *cursor) ([]checker.Anomaly, error) {
	if c.peek() == "" {
		return nil, c.unexpected("an anomaly, or none,")
	}
	var list []checker.Anomaly
	none := c.skip("none")
	for c.peek() != "" {
		w := c.next()
		anomaly := checker.Anomaly(w.text)
		switch {
		case none || w.text == "none":
			return nil, c.wrong(w, "none stands alone: remove it, or the anomalies beside it")
		case slices.Contains(list, anomaly):
			return nil, c.wrong(w, "%q is listed twice")
		case !slices.Contains(checker.Anomalies(), anomaly) && len(list) == 0 && !strings.Contains(w.text, ",") && slices.Contains(anomalyWords(), c.peek()):
			return nil, c.wrong(w, "%q is not an anomaly: if it selects strategies, a colon ends them, as in expect redlock: overlap")
		case !slices.Contains(checker.Anomalies(), anomaly):
			return nil, c.wrong(w, "%q is not an anomaly", append(anomalyWords(), "none")...)
		}
		list = append(list, anomaly)
	}
	return list, nil
}

// begin ends the settings at the first line of another kind.
func (p *parser) begin(c *cursor) error {
	if p.begun {
		return nil
	}
	p.begun = true
	p.past.nodes = newDryRun(p.script)
	return p.settled(c)
}

// finish checks the script as a whole.
func (p *parser) finish(last int) error {
	// A missing line is reported at the position where it could be added.
	missing := func(message string) error {
		return &SyntaxError{File: p.file, Line: max(last, 1), Column: 1, Message: message}
	}
	switch {
	case len(p.script.Clients) == 0:
		return missing("the script declares no clients: add a line such as clients A B")
	case len(p.script.Steps) == 0:
		return missing("the script has no steps")
	case len(p.script.Expects) == 0:
		return missing("the script expects nothing: add a line such as expect overlap, or expect none")
	}
	if running := p.past.running; len(running) > 0 {
		at := p.past.started[running[0]]
		return &SyntaxError{File: p.file, Line: at.line, Column: at.column, Message: fmt.Sprintf(
			"the stopwatch %q is never stopped, and its reading would be nowhere: add a line stop %[1]s, or remove this one", running[0])}
	}
	if n := len(p.above); n > 0 && p.above[n-1] == "" {
		p.above = p.above[:n-1]
	}
	p.script.layout.tail = p.above
	p.open()
	return nil
}

func anomalyWords() []string {
	var words []string
	for _, anomaly := range checker.Anomalies() {
		words = append(words, string(anomaly))
	}
	return words
}
