package lockproc_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/lockfault/lockfault/internal/harness/lockproc"
)

// The example in the documents is one.
func TestExample(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "..", "..", "docs", "subject.md"))
	if err != nil {
		t.Fatal(err)
	}
	seen := 0
	for line := range strings.Lines(string(text)) {
		var into any
		switch line = strings.TrimSpace(line); {
		case strings.HasPrefix(line, "> {"):
			into = &lockproc.Request{}
		case strings.HasPrefix(line, "< {"):
			into = &lockproc.Answer{}
		default:
			continue
		}
		seen++
		d := json.NewDecoder(strings.NewReader(line[2:]))
		d.DisallowUnknownFields()
		if err := d.Decode(into); err != nil {
			t.Errorf("%s: %v", line, err)
		}
	}
	if seen < 6 {
		t.Errorf("%d lines of an example", seen)
	}
}
