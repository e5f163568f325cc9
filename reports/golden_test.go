package reports_test

import (
	"path/filepath"
	"regexp"
	"testing"

	"gotest.tools/v3/golden"
)

// look is how pages look and what moves in them, which stands in files of its own.
var look = regexp.MustCompile(`(?s)<(style|script)>.*?</(style|script)>`)

// matches compares got with a golden file, of pages without their look.
func matches(t *testing.T, name, got string) {
	t.Helper()
	if filepath.Ext(name) == ".html" {
		got = look.ReplaceAllString(got, "")
	}
	golden.Assert(t, got, name)
}
