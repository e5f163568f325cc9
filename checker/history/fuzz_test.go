package history_test

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/lockfault/lockfault/checker/history"
	"github.com/lockfault/lockfault/checker/linear"
)

// fuzz reads what it is given, strictly and leniently. Nothing may panic; each
// line is accounted for: it gives events, or an error, or is counted.
func fuzz(f *testing.F, format history.Format, extension string) {
	files, err := filepath.Glob("testdata/read/*" + extension)
	if err != nil {
		f.Fatal(err)
	}
	if len(files) == 0 {
		f.Fatal("there is no seed")
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(text)
		f.Add([]byte(pack(f, string(text))))
		f.Add(bytes.ReplaceAll(text, []byte("\n"), []byte("\r\n")))
		f.Add(append([]byte("\xef\xbb\xbf"), text...))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		strict := examine(t, text, history.Options{Format: format})
		lenient := examine(t, text, history.Options{Format: format, Skip: func(err *history.Error) {
			if err.Line < 1 || err.Err == nil || strings.Contains(err.Error(), "\n") {
				t.Errorf("skipped: %q", err)
			}
		}})
		if lenient < strict {
			t.Errorf("%d events read strictly, %d leniently", strict, lenient)
		}
	})
}

// examine reads a history, judges it, and returns how many events it had.
func examine(t *testing.T, text []byte, o history.Options) int {
	r := history.New(bytes.NewReader(text), o)
	checker := linear.New(linear.Mutex(), linear.Options{})
	events, last := 0, 0
	var end error
	for e, err := range r.Events() {
		if end != nil {
			t.Fatal("an error was not the last")
		}
		if err != nil {
			end = err
			continue
		}
		events++
		if e.Line < last || e.Client == "" && e.Op != linear.Use {
			t.Fatalf("event %+v behind line %d", e, last)
		}
		last = e.Line
		checker.Add(e) // may refuse what a mutex has no meaning for
	}
	checker.Result()
	var where *history.Error
	if end != nil && (!errors.As(end, &where) || where.Line < 1 || where.Line < last || strings.Contains(end.Error(), "\n")) {
		t.Fatalf("error %q behind line %d", end, last)
	}
	if end == nil && events == 0 {
		t.Fatal("nothing was read, and nobody said so")
	}
	return events
}

func FuzzAuto(f *testing.F)      { fuzz(f, history.Auto, "*[lnv]") }
func FuzzJSONLines(f *testing.F) { fuzz(f, history.JSONLines, ".jsonl") }
func FuzzEDN(f *testing.F)       { fuzz(f, history.EDN, ".edn") }
func FuzzCSV(f *testing.F)       { fuzz(f, history.CSV, ".csv") }
