package scenarios

import (
	"fmt"

	"github.com/lockfault/lockfault/internal/printable"
)

// A SyntaxError says what is wrong with a script, or with a file of expectations,
// and where.
type SyntaxError struct {
	File         string // as given to [Parse] or [ParseExpectations]
	Line, Column int    // from 1, the column in characters
	Message      string
	Suggestion   string // the word that was probably meant; empty if none is near
}

// Error returns "file:line:column: message (did you mean "x"?)".
func (e *SyntaxError) Error() string {
	text := fmt.Sprintf("%s:%d:%d: %s", printable.Line(e.File), e.Line, e.Column, e.Message)
	if e.Suggestion != "" {
		text += fmt.Sprintf(" (did you mean %q?)", e.Suggestion)
	}
	return text
}
