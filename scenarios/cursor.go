package scenarios

import (
	"fmt"
	"strings"

	"github.com/lockfault/lockfault/internal/suggest"
)

// cursor reads the words of one line from left to right.
type cursor struct {
	file string
	line
	at int
}

// peek returns the next word's text, or "" at the end of the line.
func (c *cursor) peek() string {
	if c.at < len(c.words) {
		return c.words[c.at].text
	}
	return ""
}

// next returns the next word and advances. At the end of the line, next returns an empty word with
// the column after the last word.
func (c *cursor) next() word {
	if c.at < len(c.words) {
		c.at++
		return c.words[c.at-1]
	}
	return word{column: c.end}
}

// texts returns the texts of all words of the line.
func (c *cursor) texts() []string {
	texts := make([]string, len(c.words))
	for i, w := range c.words {
		texts[i] = w.text
	}
	return texts
}

// skip advances if the next word is the given word, and reports whether it did.
func (c *cursor) skip(text string) bool {
	if c.peek() != text {
		return false
	}
	c.at++
	return true
}

// done returns an error unless all words were read.
func (c *cursor) done() error {
	if c.at == len(c.words) {
		return nil
	}
	return c.wrong(c.next(), "the line should end before %q")
}

// wrong returns the error for a word. The format may contain one %q for the word.
func (c *cursor) wrong(w word, format string, candidates ...string) error {
	message := format
	if strings.Contains(format, "%q") {
		message = fmt.Sprintf(format, shorten(w.text))
	}
	return c.refuse(w, message, candidates...)
}

// refuse returns the error for a word with a message that is no format.
func (c *cursor) refuse(w word, message string, candidates ...string) error {
	meant, ok := sameMeaning(w.text, candidates)
	if !ok {
		meant, _ = suggest.Of(w.text, candidates)
	}
	return &SyntaxError{File: c.file, Line: c.number, Column: w.column, Message: message, Suggestion: meant}
}

// unexpected returns the error for the next word, or for a missing word, where the grammar requires
// another word.
func (c *cursor) unexpected(wanted string, candidates ...string) error {
	w := c.next()
	if w.text == "" {
		return c.wrong(w, wanted+" is missing at the end of the line")
	}
	return c.wrong(w, "%q stands where "+wanted+" should", candidates...)
}

// find returns the first word of the line with the given text, for the position of an error.
func (c *cursor) find(text string) word {
	for _, w := range c.words {
		if w.text == text {
			return w
		}
	}
	return word{text: text, column: 1}
}

// shorten limits the length of a word in a message.
func shorten(text string) string {
	const most = 40
	if letters := []rune(text); len(letters) > most {
		return string(letters[:most]) + "…"
	}
	return text
}
