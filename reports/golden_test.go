package reports_test

import (
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"testing"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// look is how pages look and what moves in them, which stands in files of its own.
var look = regexp.MustCompile(`(?s)<(style|script)>.*?</(style|script)>`)

// golden compares got with a golden file, of pages without their look.
func golden(t *testing.T, name, got string) {
	t.Helper()
	if filepath.Ext(name) == ".html" {
		got = look.ReplaceAllString(got, "")
	}
	file := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatalf("%v: run the test with -update to make it", err)
	}
	if got != string(want) {
		t.Errorf("%s differs; if the new form is right, run the test with -update\n--- got\n%s\n--- want\n%s", file, got, want)
	}
}
