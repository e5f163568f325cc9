package scenarios

import (
	"fmt"

	"github.com/lockfault/lockfault/internal/printable"
)

// SyntaxError describes an error in a script or in a file of expectations, with its position.
type SyntaxError struct {
	File         string // as given to [Parse] or [ParseExpectations]
	Line, Column int    // from 1; Column counts characters
	Message      string
	Suggestion   string // the word that was probably meant; empty if no word is close
}

// Error returns "file:line:column: message (did you mean "x"?)".
func (e *SyntaxError) Error() string {
	text := fmt.Sprintf("%s:%d:%d: %s", printable.Line(e.File), e.Line, e.Column, e.Message)
	if e.Suggestion != "" {
		text += fmt.Sprintf(" (did you mean %q?)", e.Suggestion)
	}
	return text
}
