package history

import (
	"bytes"
	"encoding/csv"
	"errors"
	"io"
	"testing"
	"unicode/utf8"
)

// FuzzFields compares with the standard library: lines are split alike, or refused
// by both.
func FuzzFields(f *testing.F) {
	for _, line := range []string{`a,b`, `,`, `"a,b",c`, `"a""b"`, `"a`, `a"b`, `"a"b`, `"",""`, ` "a"`, `"a" `, `a;b,c`} {
		f.Add([]byte(line), byte(','))
		f.Add([]byte(line), byte(';'))
	}
	var split splitFields
	f.Fuzz(func(t *testing.T, line []byte, separator byte) {
		if bytes.IndexByte(separators(), separator) < 0 || bytes.ContainsAny(line, "\r\n") || len(line) == 0 || !utf8.Valid(line) {
			return
		}
		r := csv.NewReader(bytes.NewReader(line))
		r.Comma = rune(separator)
		want, wantErr := r.Read()
		if errors.Is(wantErr, io.EOF) {
			return
		}
		got, err := split.of(line, separator)
		if (err == nil) != (wantErr == nil) {
			t.Fatalf("%q: %v, the library says %v", line, err, wantErr)
		}
		if err != nil {
			return
		}
		if len(got) != len(want) {
			t.Fatalf("%q: %q, the library says %q", line, got, want)
		}
		for i := range got {
			if string(got[i]) != want[i] {
				t.Fatalf("%q: %q, the library says %q", line, got, want)
			}
		}
	})
}
