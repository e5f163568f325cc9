package reports_test

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/lockfault/lockfault/checker"
	"github.com/lockfault/lockfault/reports"
)

func TestHistoryFile(t *testing.T) {
	dir, name := t.TempDir(), "redlock/flush.jsonl"
	file := filepath.Join(dir, filepath.FromSlash(name))
	want := race()
	if err := reports.WriteHistory(dir, name, want); err != nil {
		t.Fatal(err)
	}
	got, err := reports.ReadHistory(dir, name)
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("read back\n%+v\nwant\n%+v", got, want)
	}
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	if entries, _ := os.ReadDir(filepath.Dir(file)); len(entries) != 0 {
		t.Errorf("%v is left beside it", entries)
	}
	if _, err := reports.ReadHistory(dir, name); err == nil || !strings.Contains(err.Error(), file) {
		t.Errorf("error %v, want one that names the file", err)
	}
}

func TestWriteHistoryFails(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if err := reports.WriteHistory(file, "h.jsonl", checker.History{}); err == nil {
		t.Error("a history was written below a file")
	}
}
