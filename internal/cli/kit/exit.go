// Package kit contains what the commands of the command line have in common, apart from playing
// cells: exit statuses and the errors that carry them (exit.go), checks of arguments and flag values
// (args.go), shell completion (completion.go), output, progress and text (output.go, progress.go,
// text.go), and files that a user named (outdir.go, readinput.go, results.go).
//
// The kit is the lowest package below internal/cli: it imports no other of them, and every command
// imports it. An error without a [StatusError] ends the program with [ExitUndecided].
package kit

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/lockfault/lockfault/internal/suggest"
)

// Exit statuses of the program.
const (
	ExitOK          = 0   // completed, and everything as expected
	ExitDiffers     = 1   // completed, but something is not as expected
	ExitUsage       = 2   // invalid command line; nothing was done
	ExitUndecided   = 3   // a result is undecided or an error
	ExitInterrupted = 130 // interrupted; finished results are kept
)

// StatusError ends the program with an exit status, and with a line on standard error unless err is
// nil.
type StatusError struct {
	Code int
	Err  error
}

func (e *StatusError) Error() string {
	if e.Err == nil {
		return fmt.Sprintf("exit status %d", e.Code)
	}
	return e.Err.Error()
}

func (e *StatusError) Unwrap() error { return e.Err }

// Exit returns an error that ends the program with an exit status. A nil err prints nothing.
func Exit(code int, err error) error { return &StatusError{Code: code, Err: err} }

// Interrupted returns an error with [ExitInterrupted] and the text if err says that the command was
// interrupted, and err otherwise.
func Interrupted(err error, text string) error {
	if errors.Is(err, context.Canceled) {
		return Exit(ExitInterrupted, errors.New(text))
	}
	return err
}

// Usage returns an error that ends the program with [ExitUsage].
func Usage(format string, args ...any) error {
	return Exit(ExitUsage, fmt.Errorf(format, args...))
}

// UsageIf returns a usage error if the command line is wrong, and nil otherwise. Of several checks,
// [cmp.Or] returns the first error.
func UsageIf(wrong bool, format string, args ...any) error {
	if !wrong {
		return nil
	}
	return Usage(format, args...)
}

// OneOf returns the error of [Unknown] with a list of the known words, or nil for a known word.
func OneOf(kind, word string, known []string) error {
	if slices.Contains(known, word) {
		return nil
	}
	return Unknown(kind, word, known, "there are "+strings.Join(known, ", "))
}

// Unknown returns the usage error for an unknown word: with the most similar known word if there is
// a close match, or else with help.
func Unknown(kind, word string, known []string, help string) error {
	if meant, ok := suggest.Of(word, known); ok {
		return Usage("unknown %s %q, did you mean %q?", kind, word, meant)
	}
	return Usage("unknown %s %q: %s", kind, word, help)
}
