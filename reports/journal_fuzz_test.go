package reports

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/lockfault/lockfault/internal/below"
	"github.com/lockfault/lockfault/internal/input"
)

// FuzzJournal checks that any journal is either read or refused, and that the cells that are read
// are complete.
func FuzzJournal(f *testing.F) {
	plan := Plan{Cells: 2, Traits: []Trait{{Name: "seed", Value: "1"}}}
	first, err := json.Marshal(plan)
	if err != nil {
		f.Fatal(err)
	}
	line := `{"place":1,"attempt":1,"cell":{"world":"sim","strategy":"a","scenario":"b","verdict":"held"}}` + "\n"
	for _, rest := range []string{"", line, line + line[:20], "\n", "null\n", `{"place":-1,"cell":3}` + "\n", strings.Repeat("x", 100)} {
		f.Add([]byte(string(first) + "\n" + rest))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		out, path := journalPlace(t)
		if err := os.WriteFile(path, text, 0o600); err != nil {
			t.Fatal(err)
		}
		j, err := openJournal(out)
		if err != nil {
			t.Fatal(err)
		}
		defer j.close()
		cells := 0
		if err := j.read(plan, func(journalLine, extent) error { cells++; return nil }); err != nil {
			after, broken := os.ReadFile(path)
			if broken != nil || string(after) != string(text) {
				t.Errorf("a journal that was refused is changed: %v", broken)
			}
			return
		}
		again := 0
		j.end = 0
		if _, err := j.file.Seek(0, 0); err != nil {
			t.Fatal(err)
		}
		if err := j.read(plan, func(journalLine, extent) error { again++; return nil }); err != nil || again != cells {
			t.Errorf("%d cells, then %d: %v", cells, again, err)
		}
	})
}

// TestJournalWithLongLine checks that garbage after the cells of a journal takes bounded memory.
func TestJournalWithLongLine(t *testing.T) {
	out, path := journalPlace(t)
	j, err := openJournal(out)
	if err != nil {
		t.Fatal(err)
	}
	defer j.close()
	if err := j.begin(Plan{}); err != nil {
		t.Fatal(err)
	}
	size := j.end + input.Value + 1<<20
	if err := os.Truncate(path, size); err != nil { // sparse zeros
		t.Fatal(err)
	}
	j.end = 0
	err = j.read(Plan{}, func(journalLine, extent) error { return nil })
	if err == nil || !strings.HasSuffix(err.Error(), "more than the limit of 64 MiB") {
		t.Errorf("read returns %v", err)
	}
	if info, err := os.Stat(path); err != nil || info.Size() != size {
		t.Errorf("the journal is changed: %v", err)
	}
}

// journalPlace returns a directory for a report, and the path of its journal.
func journalPlace(t *testing.T) (out *below.Dir, path string) {
	t.Helper()
	out, err := below.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = out.Close() })
	if err := out.MkdirAll(WorkDir, 0o755); err != nil {
		t.Fatal(err)
	}
	return out, out.Join(filepath.Join(WorkDir, journalName))
}
