package reports_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/lockfault/lockfault/reports"
)

// TestWhatIsWrongIsSaidInWords checks that no error consists only of an error of the JSON library.
func TestWhatIsWrongIsSaidInWords(t *testing.T) {
	const cell = `{"strategy":"s","scenario":"c","world":"sim","verdict":"held"`
	for _, test := range []struct{ text, want string }{
		{"", "it ends in the middle"},
		{`{"tool":"lockfault","cells":[`, "it ends in the middle"},
		{`{"tool":"lockfault","cells":[` + cell, "it ends in the middle"},
		{`{"tool":"lockfault"`, "it ends in the middle"},
		{"results", "it is no JSON: invalid character"},
		{`{"tool":7,"cells":[]}`, `"tool" can't be a JSON number`},
		{`{"tool":"lockfault","cells":[` + cell + `,"elapsed_ns":"1s"}]}`, `"elapsed_ns" can't be a JSON string`},
		{`[]`, "there is [ where { should be"},
	} {
		file := filepath.Join(t.TempDir(), reports.ResultsFile)
		if err := os.WriteFile(file, []byte(test.text), 0o644); err != nil {
			t.Fatal(err)
		}
		_, err := reports.Scan(file, func(reports.Cell) error { return nil })
		if err == nil || !strings.Contains(err.Error(), file+": "+test.want) || strings.Contains(err.Error(), "EOF") {
			t.Errorf("%s: got %v, want an error with %q", test.text, err, test.want)
		}
	}
}
