package reports_test

import (
	"path/filepath"
	"regexp"
	"testing"

	"gotest.tools/v3/golden"
)

// look matches the style and the script of a page, which have files of their own.
var look = regexp.MustCompile(`(?s)<(style|script)>.*?</(style|script)>`)

// matches compares got with a golden file. Pages are compared without style and script.
func matches(t *testing.T, name, got string) {
	t.Helper()
	if filepath.Ext(name) == ".html" {
		got = look.ReplaceAllString(got, "")
	}
	golden.Assert(t, got, name)
}
