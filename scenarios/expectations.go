package scenarios

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/lockfault/lockfault/checker"
	"github.com/lockfault/lockfault/internal/suggest"
)

// Expectations hold the anomalies that a user's own strategies may show, by scenario, as read from
// a file. docs/expectations.md describes the format. The zero value is empty and ready for use.
// Expectations are not safe for concurrent use during Set.
type Expectations struct {
	file     string
	head     []string // in the format of note.above
	sections []section
	tail     []string
}

// section is the part of the text for one strategy.
type section struct {
	note
	strategy word
	line     int
	cells    []allowance
	foot     []string // comments after the cells
}

// allowance lists the anomalies that a strategy may show under one scenario.
type allowance struct {
	note
	scenario  word
	line      int
	anomalies []checker.Anomaly
}

// ParseExpectations parses a file of expectations. The name appears in messages. An invalid text
// returns a [*SyntaxError] for the first error. ParseExpectations does not check whether strategies
// and scenarios exist; use [Expectations.Check].
func ParseExpectations(name string, src []byte) (*Expectations, error) {
	lines, err := lex(name, "file", src)
	if err != nil {
		return nil, err
	}
	p := expectationsParser{e: &Expectations{file: name}, strategies: map[string]int{}}
	for _, l := range lines {
		if err := p.line(l); err != nil {
			return nil, err
		}
	}
	p.finish()
	return p.e, nil
}

type expectationsParser struct {
	e          *Expectations
	strategies map[string]int // the line of each strategy
	scenarios  map[string]int // of the current strategy
	above      []line         // comments and blank lines that belong to the next line
}

func (p *expectationsParser) line(l line) error {
	c := &cursor{file: p.e.file, line: l}
	switch {
	case len(l.words) == 0:
		p.above = append(p.above, l)
		return nil
	case l.indented:
		return p.allowance(c)
	}
	return p.section(c)
}

// section parses the line that begins a strategy's section.
func (p *expectationsParser) section(c *cursor) error {
	s := section{line: c.number, note: note{trailing: c.comment}}
	var err error
	if s.strategy, err = c.heading("strategy", p.strategies); err != nil {
		return err
	}
	if !isStrategy(s.strategy.text) {
		return c.wrong(s.strategy, "%q is not a strategy's name, of lower-case letters, digits and dashes")
	}
	if c.peek() != "" {
		return c.wrong(c.next(), "%q stands behind a strategy's name: what is about a scenario has a line of its own below, which is indented")
	}
	p.settle()
	if len(p.e.sections) == 0 {
		p.e.head, p.above = apart(p.above)
	}
	s.above, p.above = texts(p.above), nil
	p.e.sections = append(p.e.sections, s)
	p.scenarios = map[string]int{}
	return nil
}

// allowance parses the line of a scenario.
func (p *expectationsParser) allowance(c *cursor) error {
	if len(p.e.sections) == 0 {
		return c.wrong(c.next(), "no strategy stands above this line: begin with one, such as my-lock:, that is not indented")
	}
	a := allowance{line: c.number, note: note{above: texts(p.above), trailing: c.comment}}
	var err error
	if a.scenario, err = c.heading("scenario", p.scenarios); err != nil {
		return err
	}
	if strings.ContainsAny(a.scenario.text, `/\`) {
		return c.wrong(a.scenario, "%q is a path: a script of your own goes by its file's name alone")
	}
	found, err := anomalies(c)
	if err != nil {
		return err
	}
	a.anomalies = inOrder(found)
	s := &p.e.sections[len(p.e.sections)-1]
	s.cells, p.above = append(s.cells, a), nil
	return nil
}

// heading parses a name with its final colon. A repeated name is an error.
func (c *cursor) heading(kind string, lines map[string]int) (word, error) {
	w := c.next()
	name, ok := strings.CutSuffix(w.text, ":")
	if !ok || name == "" {
		return w, c.wrong(w, "%q stands where the name of a "+kind+" and a colon should")
	}
	w.text = name
	if line, ok := lines[name]; ok {
		return w, c.wrong(w, fmt.Sprintf("%%q has line %d already", line))
	}
	lines[name] = c.number
	return w, nil
}

// settle adds the indented comments after a section's cells to that section.
func (p *expectationsParser) settle() {
	if len(p.e.sections) == 0 {
		return
	}
	end := slices.IndexFunc(p.above, func(l line) bool { return l.commented && !l.indented })
	if end < 0 {
		end = len(p.above)
	}
	p.e.sections[len(p.e.sections)-1].foot = texts(p.above[:end])
	p.above = p.above[end:]
}

func (p *expectationsParser) finish() {
	p.settle()
	if len(p.e.sections) == 0 {
		p.e.head = texts(p.above)
	} else {
		p.e.tail = texts(p.above)
	}
}

// apart splits comments at the last blank line: into comments about the whole file and comments
// about the next line.
func apart(lines []line) (head []string, rest []line) {
	for i, l := range slices.Backward(lines) {
		if !l.commented {
			return texts(lines[:i]), lines[i+1:]
		}
	}
	return nil, lines
}

// texts converts comments to the format of note.above: without blank lines at either end, and
// without consecutive blank lines.
func texts(lines []line) (list []string) {
	blank := false
	for _, l := range lines {
		if !l.commented {
			blank = true
			continue
		}
		if blank && len(list) > 0 {
			list = append(list, "")
		}
		list, blank = append(list, comment(l.comment)), false
	}
	return list
}

// Of returns the anomalies that a strategy may show under the scenario with the given key and
// whether the file has this entry. The anomalies are in the order of [checker.Anomalies]; see
// [Script.Key] for keys.
func (e *Expectations) Of(strategy, scenario string) (may []checker.Anomaly, said bool) {
	if a := e.find(strategy, scenario); a != nil {
		return slices.Clone(a.anomalies), true
	}
	return nil, false
}

func (e *Expectations) find(strategy, scenario string) *allowance {
	for i := range e.sections {
		if e.sections[i].strategy.text != strategy {
			continue
		}
		cells := e.sections[i].cells
		if k := slices.IndexFunc(cells, func(a allowance) bool { return a.scenario.text == scenario }); k >= 0 {
			return &cells[k]
		}
		return nil
	}
	return nil
}

// Scenarios returns the keys of the strategy's scenarios in the order of the text.
func (e *Expectations) Scenarios(strategy string) (keys []string) {
	for _, s := range e.sections {
		if s.strategy.text == strategy {
			for _, a := range s.cells {
				keys = append(keys, a.scenario.text)
			}
		}
	}
	return keys
}

// Set sets the anomalies that a strategy may show under a scenario, in any order. Set replaces an
// existing entry and keeps its comments. A name that the file format cannot represent is an error.
func (e *Expectations) Set(strategy, scenario string, may []checker.Anomaly) error {
	switch {
	case !isStrategy(strategy):
		return fmt.Errorf("scenarios: %q is not a strategy's name, of lower-case letters, digits and dashes", strategy)
	case !isKey(scenario):
		return fmt.Errorf("scenarios: the scenario's name %q can't stand in a file of expectations: rename its script, such that it has no blanks, # and slashes", scenario)
	}
	for _, a := range may {
		if !slices.Contains(checker.Anomalies(), a) {
			return fmt.Errorf("scenarios: there is no anomaly called %q", a)
		}
	}
	if a := e.find(strategy, scenario); a != nil {
		a.anomalies = inOrder(may)
		return nil
	}
	i := slices.IndexFunc(e.sections, func(s section) bool { return s.strategy.text == strategy })
	if i < 0 {
		i = len(e.sections)
		e.sections = append(e.sections, section{strategy: word{text: strategy}})
	}
	e.sections[i].cells = append(e.sections[i].cells, allowance{scenario: word{text: scenario}, anomalies: inOrder(may)})
	return nil
}

// isStrategy reports whether text has the form of a strategy's name.
func isStrategy(text string) bool {
	return madeOf(text, func(letter rune) bool { return isLower(letter) || isDigit(letter) || letter == '-' })
}

// isKey reports whether text has the form of a scenario's key.
func isKey(text string) bool {
	l, err := cut("file", text+":")
	return err == nil && text != "" && !l.commented && len(l.words) == 1 && l.words[0].text == text+":" && !strings.ContainsAny(text, `/\`)
}

// Check returns a [*SyntaxError] for the first unknown strategy or scenario. Known are the given
// strategies, the library's scenarios, and every name that has the form of a user's own script. The
// given scripts are the keys of the available user scripts and serve only for suggestions, since
// another script may exist at another time.
func (e *Expectations) Check(strategies, scripts []string) error {
	wrong := func(line int, w word, kind, meant, help string) error {
		message := fmt.Sprintf("no %s is called %q", kind, shorten(w.text))
		if meant == "" {
			message += help
		}
		return &SyntaxError{File: e.file, Line: line, Column: w.column, Message: message, Suggestion: meant}
	}
	for _, s := range e.sections {
		if name := s.strategy.text; !slices.Contains(strategies, name) {
			meant, _ := suggest.Of(name, strategies)
			return wrong(s.line, s.strategy, "strategy", meant, "")
		}
		for _, a := range s.cells {
			if meant, ok := known(a.scenario.text, scripts); !ok {
				return wrong(a.line, a.scenario, "scenario", meant, ownHelp)
			}
		}
	}
	return nil
}

// known reports whether the key is that of a scenario, and returns the probably meant key if not.
func known(key string, scripts []string) (meant string, ok bool) {
	switch {
	case slices.Contains(All(), key) || len(key) > len(own) && strings.HasSuffix(key, own):
		return "", true
	case slices.Contains(scripts, key+own):
		return key + own, false
	}
	meant, _ = suggest.Of(key, slices.Concat(All(), scripts))
	return meant, false
}

// own is the suffix of the keys of a user's own scripts.
const own = ".txt"

const ownHelp = "; a script of your own goes by the name of its file, such as mine" + own

// Key returns the script's name in files of expectations: its name, with the suffix ".txt" unless
// it belongs to the library. The suffix keeps a user's own script apart from a library script with
// the same name.
func (s *Script) Key() string {
	if s.library {
		return s.Name
	}
	return s.Name + own
}

// CheckMay returns an error for the first unknown scenario or anomaly in a strategy's Expected map.
// The scripts are the keys of the available user scripts, as for [Expectations.Check].
func CheckMay(may map[string][]string, scripts []string) error {
	for _, key := range sortedKeys(may) {
		meant, ok := known(key, scripts)
		switch {
		case !ok && meant != "":
			return fmt.Errorf("no scenario is called %q, did you mean %q?", key, meant)
		case !ok:
			return fmt.Errorf("no scenario is called %q%s", key, ownHelp)
		}
		for _, anomaly := range may[key] {
			if slices.Contains(checker.Anomalies(), checker.Anomaly(anomaly)) {
				continue
			}
			if meant, ok := suggest.Of(anomaly, anomalyWords()); ok {
				return fmt.Errorf("under %s: no anomaly is called %q, did you mean %q?", key, anomaly, meant)
			}
			return fmt.Errorf("under %s: no anomaly is called %q: there are %s", key, anomaly, strings.Join(anomalyWords(), ", "))
		}
	}
	return nil
}

// Format returns the expectations in canonical form: strategies and their scenarios in alphabetical
// order, with their comments. Parsing the result returns equal expectations.
func (e *Expectations) Format() []byte {
	var p printer
	p.lines(e.head)
	sections := slices.SortedStableFunc(slices.Values(e.sections), func(a, b section) int {
		return cmp.Compare(a.strategy.text, b.strategy.text)
	})
	for _, s := range sections {
		p.paragraph()
		p.line(s.note, s.strategy.text+":", "")
		cells := slices.SortedStableFunc(slices.Values(s.cells), func(a, b allowance) int {
			return cmp.Compare(a.scenario.text, b.scenario.text)
		})
		for _, a := range cells {
			a.above = indented(a.above)
			p.line(a.note, "  "+a.scenario.text+": "+anomalyText(a.anomalies), "")
		}
		p.lines(indented(s.foot))
	}
	if len(e.tail) > 0 {
		p.paragraph()
		p.lines(e.tail)
	}
	return p.Bytes()
}

func indented(lines []string) []string {
	list := make([]string, len(lines))
	for i, text := range lines {
		if text != "" {
			text = "  " + text
		}
		list[i] = text
	}
	return list
}
