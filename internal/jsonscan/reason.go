package jsonscan

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
)

// Reason returns an error of encoding/json in terms of the file: with its keys, and without names
// of Go types. Reason returns other errors unchanged, and nil for nil.
func Reason(err error) error {
	var syntax *json.SyntaxError
	var kind *json.UnmarshalTypeError
	switch {
	case err == nil:
		return nil
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return errors.New("it ends in the middle")
	case errors.As(err, &syntax):
		return fmt.Errorf("it is no JSON: %w", err)
	case errors.As(err, &kind) && kind.Field != "":
		return fmt.Errorf("%q can't be a JSON %s", Key(kind), kind.Value)
	case errors.As(err, &kind):
		return fmt.Errorf("there is a JSON %s where something else should be", kind.Value)
	}
	return err
}

// Key returns the JSON key of the value that has the wrong type. The path in the error itself also
// names embedded Go types.
func Key(err *json.UnmarshalTypeError) string {
	return err.Field[strings.LastIndex(err.Field, ".")+1:]
}
