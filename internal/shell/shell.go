// Package shell reads and writes words as shells do.
package shell

import (
	"errors"
	"fmt"
	"strings"
)

// ErrOpenQuote says that a command line has a quote that doesn't end.
var ErrOpenQuote = errors.New("a quote is not closed")

// Split splits a command into its words as a shell does, with quotes and
// backslashes and nothing else: no variable, pattern or pipe means anything.
func Split(text string) (words []string, err error) {
	var word strings.Builder
	begun := false // a word that may be empty
	quote := rune(0)
	escaped := false
	for _, r := range text {
		switch {
		case escaped:
			if quote == '"' && r != '"' && r != '\\' {
				word.WriteRune('\\')
			}
			word.WriteRune(r)
			escaped = false
		case r == '\\' && quote != '\'':
			begun, escaped = true, true
		case quote != 0 && r == quote:
			quote = 0
		case quote != 0:
			word.WriteRune(r)
		case r == '\'' || r == '"':
			begun, quote = true, r
		case strings.ContainsRune(" \t\r\n", r):
			if begun {
				words = append(words, word.String())
			}
			word.Reset()
			begun = false
		default:
			word.WriteRune(r)
			begun = true
		}
	}
	if quote != 0 || escaped {
		return nil, ErrOpenQuote
	}
	if begun {
		words = append(words, word.String())
	}
	return words, nil
}

// Line returns words as one command line, which a shell takes and [Split].
func Line(words []string) string {
	quoted := make([]string, len(words))
	for i, word := range words {
		quoted[i] = Quote(word)
	}
	return strings.Join(quoted, " ")
}

// Quote returns a word as a shell takes it, and [Split].
func Quote(arg string) string {
	const plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_./:,@%+="
	if arg != "" && strings.Trim(arg, plain) == "" {
		return arg
	}
	return "'" + strings.ReplaceAll(arg, "'", `'\''`) + "'"
}

// A Command holds the words of a command line.
type Command []string

// Flag adds a flag with its values, if it is given.
func (c *Command) Flag(given bool, name string, values ...any) {
	if given {
		*c = append(*c, "--"+name)
		for _, value := range values {
			*c = append(*c, fmt.Sprint(value))
		}
	}
}
