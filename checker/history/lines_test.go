package history

import (
	"bufio"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
)

// pieces returns what a splitter makes of its input, and the line of each piece.
func pieces(t *testing.T, s splitter) (texts []string, at []int) {
	t.Helper()
	for {
		text, line, err := s.next()
		if errors.Is(err, io.EOF) {
			return texts, at
		}
		if err != nil {
			t.Fatal(err)
		}
		texts, at = append(texts, string(text)), append(at, line)
	}
}

func TestLines(t *testing.T) {
	// The buffer is smaller than a line, as it is for the longest lines.
	texts, at := pieces(t, newLines(bufio.NewReaderSize(strings.NewReader("a\r\n\n \t\r\n"+strings.Repeat("b", 40)+"\nc\rd\r\r\ne"), 16)))
	if want := []string{"a", strings.Repeat("b", 40), "c\rd\r", "e"}; !slices.Equal(texts, want) {
		t.Errorf("got %q, want %q", texts, want)
	}
	if want := []int{1, 4, 5, 6}; !slices.Equal(at, want) {
		t.Errorf("lines %v, want %v", at, want)
	}
}

func TestForms(t *testing.T) {
	tests := []struct {
		text  string
		texts []string
		at    []int
	}{
		{"", nil, nil},
		{"{:a 1}{:b 2}\n{:c\n3}", []string{"{:a 1}", "{:b 2}", "{:c\n3}"}, []int{1, 1, 2}},
		{"[{:a 1},\n{:b 2}]\n", []string{"{:a 1}", "{:b 2}"}, []int{1, 2}},
		{"({} [])", []string{"{}", "[]"}, []int{1, 1}},
		{"; {:a 1}\n{:a ;}\n 1}", []string{"{:a \n 1}"}, []int{2}},
		{`{:a "}\"{" :b \} :c \"}{}`, []string{`{:a "}\"{" :b \} :c \"}`, "{}"}, []int{1, 1}},
		{"#x.y {:a #{1}} #_{:b 2} #_ {:c 3} #_d e", []string{"#x.y {:a #{1}}", "#_{:b 2}", "#_ {:c 3}", "#_d", "e"}, []int{1, 1, 1, 1, 1}},
		{"1 a :k", []string{"1", "a", ":k"}, []int{1, 1, 1}},
	}
	for _, test := range tests {
		texts, at := pieces(t, newForms(bufio.NewReader(strings.NewReader(test.text)), nil))
		if !slices.Equal(texts, test.texts) || !slices.Equal(at, test.at) {
			t.Errorf("%q: got %q on lines %v, want %q on lines %v", test.text, texts, at, test.texts, test.at)
		}
	}
}
