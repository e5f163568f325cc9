package scenarios

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/lockfault/lockfault/faults"
)

// Defaults returns the settings of a script without settings. A script that does not come from
// Parse must still set its clients.
func Defaults() Settings {
	return Settings{
		TTL:         30 * time.Second,
		Nodes:       1,
		Grace:       faults.Span{TTLs: 0.5},
		Bound:       faults.Span{TTLs: 5},
		Patience:    faults.Span{TTLs: 3},
		ReadTimeout: faults.Span{TTLs: 0.1},
	}
}

// settingWords returns the first words of settings, in canonical order.
func settingWords() []string {
	return []string{
		"ttl", "clients", "nodes", "replicas", "for", "elsewhere", "grace", "bound", "patience",
		"retries", "read-timeout", "context-timeout", "honour", "thread", "param",
	}
}

// setting parses a line with a setting.
func (p *parser) setting(c *cursor) error {
	name := c.next()
	if p.begun {
		return c.wrong(name, "%q is a setting: settings stand before the first step and the first expect")
	}
	key := name.text
	if key == "thread" || key == "param" {
		key += " " + c.peek()
	}
	if earlier, ok := p.given[key]; ok {
		return c.wrong(name, fmt.Sprintf("%s is already set on line %d", shorten(key), earlier))
	}
	if err := p.value(c, name.text); err != nil {
		return err
	}
	if err := c.done(); err != nil {
		return err
	}
	p.given[key] = c.number
	p.script.layout.settings = append(p.script.layout.settings, placed{key, c.number})
	return nil
}

// value parses the words after a setting's first word.
func (p *parser) value(c *cursor, name string) (err error) {
	s := &p.script.Settings
	switch name {
	case "ttl":
		s.TTL, err = ttl(c)
	case "clients":
		s.Clients, err = declared(c)
	case "nodes":
		s.Nodes, err = number(c, "nodes", 1, MaxNodes)
	case "replicas":
		s.Replicas, err = number(c, "replicas", 0, maxReplicas)
	case "for":
		s.For, err = p.selectors(c)
	case "elsewhere":
		s.Elsewhere, err = elsewhere(c)
	case "grace":
		s.Grace, err = span(c, faults.NotNegativeSpan)
	case "bound":
		s.Bound, err = span(c, faults.PositiveSpan)
	case "patience":
		s.Patience, err = span(c, faults.PositiveSpan)
	case "read-timeout":
		s.ReadTimeout, err = span(c, faults.PositiveSpan)
	case "retries":
		s.Retries, err = number(c, "retries", 0, maxCount)
	case "context-timeout":
		switch {
		case c.skip("off"):
			s.IgnoreContext = true
		case c.skip("on"):
			s.IgnoreContext = false
		default:
			return c.unexpected("on or off", "on", "off")
		}
	case "honour":
		if !c.skip("validity") {
			return c.unexpected("validity", "validity")
		}
		s.HonourValidity = true
	case "thread":
		err = p.thread(c)
	case "param":
		err = p.param(c)
	}
	return err
}

// thread parses "thread 7 A B".
func (p *parser) thread(c *cursor) error {
	id := c.next()
	switch {
	case id.text == "":
		return c.wrong(id, "a thread id is missing at the end of the line")
	case !madeOf(id.text, isThreadLetter):
		return c.wrong(id, "%q is not a thread id: letters, digits, '-', '_' and '.' make one")
	case c.peek() == "":
		return c.unexpected("a client")
	}
	for c.peek() != "" {
		client := c.next()
		if !isClient(client.text) {
			return c.wrong(client, "%q is not a client's name such as A")
		}
		if other, ok := p.script.Threads[client.text]; ok {
			return c.wrong(client, fmt.Sprintf("client %s already has the thread id %s", shorten(client.text), other))
		}
		if len(p.script.Threads) == maxClients {
			return c.wrong(client, fmt.Sprintf("a script has at most %d clients", maxClients))
		}
		if p.script.Threads == nil {
			p.script.Threads = map[string]string{}
		}
		p.script.Threads[client.text] = id.text
	}
	return nil
}

// settled checks the settings against each other, after the last setting.
func (p *parser) settled(c *cursor) error {
	if len(p.script.Clients) == 0 {
		return c.wrong(word{column: 1}, "the script declares no clients before this line: add one such as clients A B")
	}
	// In the order of the lines, so that the first error is deterministic.
	for _, setting := range p.script.layout.settings {
		id, isThread := strings.CutPrefix(setting.key, "thread ")
		if !isThread {
			continue
		}
		for _, client := range sortedKeys(p.script.Threads) {
			if p.script.Threads[client] == id && !slices.Contains(p.script.Clients, client) {
				return &SyntaxError{File: p.file, Line: setting.line, Column: 1,
					Message: fmt.Sprintf("client %s is not declared", shorten(client))}
			}
		}
	}
	return nil
}

func ttl(c *cursor) (time.Duration, error) {
	if c.peek() == "" {
		return 0, c.unexpected("a length of time")
	}
	w := c.next()
	length, err := time.ParseDuration(w.text)
	switch {
	case err != nil:
		return 0, c.wrong(w, "%q is not a length of time such as 30s")
	case length < time.Millisecond || length > maxTime || length%time.Millisecond != 0:
		return 0, c.wrong(w, "the TTL is a whole number of milliseconds, from 1ms to 1000h")
	}
	return length, nil
}

// declared parses the names of new clients.
func declared(c *cursor) ([]string, error) {
	var names []string
	for c.peek() != "" {
		w := c.next()
		switch {
		case !isClient(w.text):
			return nil, c.wrong(w, "%q is not a client's name: a capital letter, then letters or digits", strings.ToUpper(w.text))
		case slices.Contains(names, w.text):
			return nil, c.wrong(w, "client %q is declared twice")
		case len(names) == maxClients:
			return nil, c.wrong(w, fmt.Sprintf("a script has at most %d clients", maxClients))
		}
		names = append(names, w.text)
	}
	if len(names) == 0 {
		return nil, c.unexpected("a client")
	}
	return names, nil
}

// selectors parses selectors up to the end of the line.
func (p *parser) selectors(c *cursor) ([]Selector, error) {
	var list []Selector
	for c.peek() != "" {
		w := c.next()
		s, err := p.selector(c, w, w.text)
		if err != nil {
			return nil, err
		}
		list = append(list, s)
	}
	if len(list) == 0 {
		return nil, c.unexpected("a strategy")
	}
	return list, nil
}

// selector parses one selector; text is the word without a final colon.
func (p *parser) selector(c *cursor, w word, text string) (Selector, error) {
	if !validSelector(text) {
		var meant []string
		if lower := strings.ToLower(text); validSelector(lower) {
			meant = []string{lower}
		}
		return "", c.wrong(w, "%q is not a strategy's name, a pattern such as set-nx-*, or a tag such as @single", meant...)
	}
	p.script.layout.selectors = append(p.script.layout.selectors, place{c.number, w.column})
	return Selector(text), nil
}

// elsewhere parses the names and tags of strategies in other programs.
func elsewhere(c *cursor) ([]Selector, error) {
	var list []Selector
	for c.peek() != "" {
		w := c.next()
		switch s := Selector(w.text); {
		case !validSelector(w.text) || strings.Contains(w.text, "*"):
			return nil, c.wrong(w, "%q is not a strategy's name, or a tag such as @single")
		case slices.Contains(list, s):
			return nil, c.wrong(w, "%q is named twice")
		default:
			list = append(list, s)
		}
	}
	if len(list) == 0 {
		return nil, c.unexpected("a strategy")
	}
	return list, nil
}
