package jsonscan

import (
	"encoding/json"
	"reflect"
	"strings"
)

// Lines reads lines that are JSON objects into structs of type T, whose fields are strings,
// integers of at least 64 bits and booleans, each with a name in its json tag. Embedded structs are
// read as encoding/json reads them. Lines is safe for concurrent use.
type Lines[T any] struct {
	fields map[string]field
	names  []string
}

// A field is a field of T.
type field struct {
	bit   uint64 // in the set of the fields of a line
	index []int
	kind  reflect.Kind
}

// LinesOf returns the reader of lines of T, which has at most 64 fields.
func LinesOf[T any]() *Lines[T] {
	l := &Lines[T]{fields: map[string]field{}}
	for _, f := range reflect.VisibleFields(reflect.TypeFor[T]()) {
		if name, _, _ := strings.Cut(f.Tag.Get("json"), ","); name != "" {
			l.fields[name] = field{1 << len(l.names), f.Index, f.Type.Kind()}
			l.names = append(l.names, name)
		}
	}
	return l
}

// Names returns the JSON names of the fields of T. The caller must not modify the list.
func (l *Lines[T]) Names() []string { return l.names }

// Read decodes a line into v, at a fraction of the cost of encoding/json; intern makes the strings.
// Read returns false for every invalid line, for unknown and for repeated fields, and for rare
// constructs (escapes by number, null, numbers of too many digits); some fields of v may be set by
// then. A line for which Read returns true is decoded as encoding/json decodes it.
func (l *Lines[T]) Read(b []byte, v *T, intern func([]byte) string) bool {
	i := Blanks(b, 0)
	if i >= len(b) || b[i] != '{' {
		return false
	}
	fields := reflect.ValueOf(v).Elem()
	for seen := uint64(0); ; {
		if i = Blanks(b, i+1); i >= len(b) || b[i] != '"' {
			return false
		}
		end := Plain(b, i+1)
		if end >= len(b) || b[end] != '"' {
			return false
		}
		f, ok := l.fields[string(b[i+1:end])] // does not allocate
		if !ok || seen&f.bit != 0 {
			return false
		}
		seen |= f.bit
		if i = Blanks(b, end+1); i >= len(b) || b[i] != ':' {
			return false
		}
		if i = Blanks(b, i+1); i >= len(b) {
			return false
		}
		if i = f.read(b, i, fields.FieldByIndex(f.index), intern); i < 0 {
			return false
		}
		if i = Blanks(b, i); i >= len(b) {
			return false
		}
		switch b[i] {
		case ',':
		case '}':
			return Blanks(b, i+1) == len(b)
		default:
			return false
		}
	}
}

// read reads the value that begins at i into to.
func (f field) read(b []byte, i int, to reflect.Value, intern func([]byte) string) int {
	switch f.kind {
	case reflect.String:
		if b[i] != '"' {
			return -1
		}
		text, escaped, end := text(b, i+1)
		if end < 0 {
			return -1
		}
		if escaped {
			var s string
			if json.Unmarshal(b[i:end], &s) != nil {
				return -1
			}
			to.SetString(s)
			return end
		}
		to.SetString(intern(text))
		return end
	case reflect.Bool:
		for _, word := range []string{"true", "false"} {
			if len(b)-i >= len(word) && string(b[i:i+len(word)]) == word {
				to.SetBool(word == "true")
				return i + len(word)
			}
		}
		return -1
	}
	n, end := Number(b, i)
	if end >= 0 {
		to.SetInt(n)
	}
	return end
}
