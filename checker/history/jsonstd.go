package history

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/lockfault/lockfault/internal/jsonscan"
	"github.com/lockfault/lockfault/internal/suggest"
)

// decode decodes a line with encoding/json. decode is for lines that jsonFormat rejects; its errors
// explain the problem.
func decode(text []byte, v *jsonLine) error {
	if err := exactly(text, jsonFormat.Names()); err != nil {
		return err
	}
	if err := decodeStrictly(text, v); err != nil {
		return err
	}
	if hasHalfSurrogate(text, v.Client, v.Key, v.Owner, v.Value) {
		return errors.New(`an escape as \ud800 is half of a character, and the other half is missing`)
	}
	return nil
}

// hasHalfSurrogate reports whether one of the words of the line contains half of a surrogate pair
// as an escape. encoding/json decodes every such half to the same character, so two names could be
// confused.
func hasHalfSurrogate(text []byte, words ...string) bool {
	return slices.ContainsFunc(words, func(word string) bool { return strings.ContainsRune(word, utf8.RuneError) }) &&
		!bytes.ContainsRune(text, utf8.RuneError) && !bytes.Contains(bytes.ToLower(text), []byte(`\ufffd`))
}

// exactly returns an error for an object with a duplicate field or a field that is not in fields,
// including names that differ only in case. encoding/json would use the last duplicate, and accept
// CLIENT for client. Text that is not an object is left to encoding/json.
func exactly(text []byte, fields []string) error {
	decoder := json.NewDecoder(bytes.NewReader(text))
	if begin, err := decoder.Token(); err != nil || begin != json.Delim('{') {
		return nil
	}
	var seen []string
	for decoder.More() {
		token, err := decoder.Token()
		name, ok := token.(string)
		if err != nil || !ok {
			return nil
		}
		if !slices.Contains(fields, name) {
			if meant, ok := suggest.Of(name, fields); ok {
				return fmt.Errorf("unknown field %.40q, did you mean %q?", name, meant)
			}
			return fmt.Errorf("unknown field %.40q: leave it out; docs/history.md has those that there are", name)
		}
		if slices.Contains(seen, name) {
			return fmt.Errorf("it has %q twice: leave out one of them", name)
		}
		seen = append(seen, name)
		var value json.RawMessage
		if decoder.Decode(&value) != nil {
			return nil
		}
	}
	return nil
}

// decodeStrictly decodes exactly one JSON object into v and rejects fields that v does not have.
func decodeStrictly(text []byte, v any) error {
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(v); err != nil {
		var kind *json.UnmarshalTypeError
		if errors.As(err, &kind) && kind.Field == "" {
			return fmt.Errorf("it is a JSON %s, not an object", kind.Value)
		}
		if kind != nil {
			return fmt.Errorf("%q can't be a JSON %s", jsonscan.Key(kind), kind.Value)
		}
		return reason(err)
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return errors.New("there is more than one object on the line")
	}
	return nil
}
