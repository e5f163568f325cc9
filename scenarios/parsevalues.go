package scenarios

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/lockfault/lockfault/faults"
)

func isUpper(letter rune) bool { return letter >= 'A' && letter <= 'Z' }
func isLower(letter rune) bool { return letter >= 'a' && letter <= 'z' }
func isDigit(letter rune) bool { return letter >= '0' && letter <= '9' }
func isName(letter rune) bool  { return isUpper(letter) || isLower(letter) || isDigit(letter) }

func isStopwatchLetter(letter rune) bool {
	return isLower(letter) || isDigit(letter) || letter == '-'
}

func isThreadLetter(letter rune) bool {
	return isName(letter) || strings.ContainsRune("-_.", letter)
}

// madeOf reports whether text is not empty and consists of letters that such accepts.
func madeOf(text string, such func(rune) bool) bool {
	return text != "" && !strings.ContainsFunc(text, func(letter rune) bool { return !such(letter) })
}

// isClient reports whether text has the form of a client's name.
func isClient(text string) bool { return faults.IsClient(text) }

// isNode reports whether text has the form of a node's or a server's name.
func isNode(text string) bool { return faults.IsNode(text) }

// nodeNames returns the node names that a script with n nodes can use.
func nodeNames(n int) []string {
	var names []string
	for i := 1; i <= n; i++ {
		names = append(names, "n"+strconv.Itoa(i))
	}
	return append(names, faults.Quorum)
}

// clients parses a list of declared clients.
func (p *parser) clients(c *cursor) ([]string, error) {
	var names []string
	for isClient(c.peek()) {
		w := c.next()
		switch {
		case !p.anyNames && !slices.Contains(p.script.Clients, w.text):
			return nil, p.undeclared(c, w)
		case slices.Contains(names, w.text):
			return nil, c.wrong(w, "client %q is named twice")
		}
		names = append(names, w.text)
	}
	return names, nil
}

// undeclared returns the error for an undeclared client: the word may be a word of the language in
// capital letters.
func (p *parser) undeclared(c *cursor, w word) error {
	message := "client %q is not declared: the script has clients " + strings.Join(p.script.Clients, " ")
	// After hold and the other gate verbs, the word may be a command without its direction.
	command := slices.Contains(faults.Words(faults.OnMessages), c.words[0].text) && knownCommand(w.text)
	words := append(languageWords(), nodeNames(p.script.Nodes)...)
	if slices.Contains(p.script.Clients, c.words[0].text) {
		words = clientWords()
	}
	if !command {
		if meant, ok := inSmallLetters(w.text, words); ok {
			return c.wrong(w, message+"; words are written in small letters", meant)
		}
	}
	return c.wrong(w, message, p.script.Clients...)
}

// serverNames returns the names of a node's servers.
func (p *parser) serverNames(node string) []string {
	var names []string
	for i := range 1 + p.script.Replicas {
		names = append(names, node+"/"+strconv.Itoa(i))
	}
	return names
}

// nodes parses a list of node names.
func (p *parser) nodes(c *cursor) ([]string, error) { return p.places(c, false) }

// places parses a list of node names and, if servers is true, of server names.
func (p *parser) places(c *cursor, servers bool) ([]string, error) {
	var names []string
	for isNode(c.peek()) {
		w := c.next()
		node, _, server := strings.Cut(w.text, "/")
		switch {
		case server && !servers:
			return nil, c.wrong(w, "%q is one server: here stands a node, "+node)
		case !p.anyNames && !slices.Contains(nodeNames(p.script.Nodes), node):
			return nil, c.wrong(w, fmt.Sprintf("the script has no node %q: it has nodes %d", node, p.script.Nodes))
		case server && !p.anyNames && !slices.Contains(p.serverNames(node), w.text):
			return nil, c.wrong(w, fmt.Sprintf("the script has no server %%q: with replicas %d, %s has %s",
				p.script.Replicas, node, strings.Join(p.serverNames(node), " ")))
		case slices.Contains(names, w.text):
			return nil, c.wrong(w, "node %q is named twice")
		}
		names = append(names, w.text)
	}
	return names, nil
}

// number parses a whole number in a phrase such as "rounds 5"; what is its name in messages.
func number(c *cursor, what string, least, most int) (int, error) {
	if c.peek() == "" {
		return 0, c.unexpected("the number of " + what)
	}
	w := c.next()
	n, err := strconv.Atoi(w.text)
	if err != nil || !madeOf(w.text, isDigit) {
		return 0, c.wrong(w, "%q is not a number of "+what)
	}
	if n < least || n > most {
		return 0, c.wrong(w, fmt.Sprintf("the number of %s must be from %d to %d", what, least, most))
	}
	return n, nil
}

// span parses a duration.
func span(c *cursor, allowed faults.SpanRule) (faults.Span, error) {
	if c.peek() == "" {
		return faults.Span{}, c.unexpected("a length of time such as 30s or 1.1ttl")
	}
	w := c.next()
	s, err := faults.ParseSpan(w.text)
	ttls := math.Abs(s.TTLs)
	switch {
	case err != nil:
		return faults.Span{}, c.wrong(w, "%q is not a length of time such as 30s, 200ms or 1.1ttl")
	case allowed != faults.SignedSpan && strings.ContainsAny(w.text[:1], "+-"):
		return faults.Span{}, c.wrong(w, "%q has a sign: only clocks move forward and back")
	case ttls > maxTTLs || ttls != 0 && ttls < minTTLs || s.Abs > maxTime || s.Abs < -maxTime:
		return faults.Span{}, c.wrong(w, "%q is out of range: at most 1000h or 1000ttl, at least 1ns or 0.000001ttl")
	case allowed == faults.PositiveSpan && s.IsZero():
		return faults.Span{}, c.wrong(w, "%q is no time at all")
	}
	return s, nil
}

// rate parses a number of bytes per time.
func rate(c *cursor) (faults.Rate, error) {
	if c.peek() == "" {
		return faults.Rate{}, c.unexpected("a rate such as 200B/ttl or 2KB/s")
	}
	w := c.next()
	r, err := faults.ParseRate(w.text)
	switch {
	case err != nil:
		return faults.Rate{}, c.wrong(w, "%q is not a rate such as 200B/ttl or 2KB/s")
	case r == faults.Rate{}:
		return faults.Rate{}, c.wrong(w, "%q is for links of clients: write start to end what was done to the replication")
	case r.Bytes > maxBytes:
		return faults.Rate{}, c.wrong(w, fmt.Sprintf("%%q is out of range: at most %dKB", maxBytes/1000))
	}
	return r, nil
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
