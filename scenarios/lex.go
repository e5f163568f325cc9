package scenarios

import (
	"bytes"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/lockfault/lockfault/internal/printable"
)

// word is a word of a script with its position.
type word struct {
	text   string
	column int // in characters, from 1
}

// line is a line of a script, split into words.
type line struct {
	number    int
	words     []word
	commented bool
	indented  bool   // the line begins with white space
	comment   string // without "#", the blank after it, and trailing blanks
	end       int    // the column after the last word, for errors about a missing word
}

// lex splits a text into lines and lines into words. The kind of the text, such as "script",
// appears in messages.
func lex(file, what string, src []byte) ([]line, error) {
	if len(src) > MaxFile {
		return nil, &SyntaxError{File: file, Line: 1, Column: 1,
			Message: fmt.Sprintf("the %s is larger than %d bytes", what, MaxFile)}
	}
	src = bytes.TrimPrefix(src, []byte("\ufeff"))
	var lines []line
	for number := 1; len(src) > 0; number++ {
		text, rest, _ := bytes.Cut(src, []byte("\n"))
		src = rest
		l, err := cut(what, string(bytes.TrimSuffix(text, []byte("\r"))))
		if err != nil {
			err.File, err.Line = file, number
			return nil, err
		}
		l.number = number
		lines = append(lines, l)
	}
	return lines, nil
}

// cut splits one line into words. Its error lacks file and line.
func cut(what, text string) (line, *SyntaxError) {
	if len(text) > maxLine {
		return line{}, &SyntaxError{Column: 1, Message: fmt.Sprintf("the line is longer than %d bytes", maxLine)}
	}
	l := line{end: 1, indented: text != "" && strings.Contains(" \t", text[:1])}
	column, start := 0, -1
	finish := func(end int) {
		if start >= 0 {
			l.words[len(l.words)-1].text = text[start:end]
			l.end, start = column, -1
		}
	}
	for i, letter := range text {
		column++
		switch {
		case letter == utf8.RuneError && !strings.HasPrefix(text[i:], "\ufffd"):
			return line{}, &SyntaxError{Column: column, Message: "this is not UTF-8: save the " + what + " as UTF-8 text"}
		case printable.Unprintable(letter) && letter != '\t':
			return line{}, &SyntaxError{Column: column, Message: fmt.Sprintf("control character %U: %ss are plain text", letter, what)}
		case l.commented:
		case letter == '#':
			finish(i)
			l.commented = true
			l.comment = strings.TrimRight(strings.TrimPrefix(text[i+1:], " "), " \t")
		case letter == ' ' || letter == '\t':
			finish(i)
		case start < 0:
			start = i
			l.words = append(l.words, word{column: column})
		}
	}
	column++
	finish(len(text))
	return l, nil
}
