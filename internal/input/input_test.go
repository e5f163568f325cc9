package input

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestRead(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, []byte("12345"), 0o600); err != nil {
		t.Fatal(err)
	}
	large := filepath.Join(dir, "large")
	if err := os.WriteFile(large, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(large, 50<<20); err != nil { // a sparse file
		t.Fatal(err)
	}
	if text, err := Read(file, 5); err != nil || string(text) != "12345" {
		t.Errorf("%q, %v", text, err)
	}
	for path, want := range map[string]string{
		file:                        "5 bytes, more than the limit of 4 bytes",
		large:                       "52428800 bytes, more than the limit of 4 bytes",
		dir:                         "not a regular file",
		filepath.Join(dir, "other"): "",
	} {
		_, err := Read(path, 4)
		if err == nil || !strings.Contains(err.Error(), " "+path+": ") || !strings.HasSuffix(err.Error(), want) {
			t.Errorf("%s: %v", path, err)
		}
		if missing := want == ""; errors.Is(err, fs.ErrNotExist) != missing {
			t.Errorf("%s: %v", path, err)
		}
	}
	if _, err := Read(large, 1<<20); err == nil || !strings.HasSuffix(err.Error(), "more than the limit of 1 MiB") {
		t.Error(err)
	}
}

func TestReadAll(t *testing.T) {
	if text, err := ReadAll(strings.NewReader("1234"), "standard input", 4); err != nil || string(text) != "1234" {
		t.Errorf("%q, %v", text, err)
	}
	_, err := ReadAll(strings.NewReader("12345"), "standard input", 4)
	if tooLarge := (*TooLargeError)(nil); !errors.As(err, &tooLarge) || err.Error() != "read standard input: more than the limit of 4 bytes" {
		t.Error(err)
	}
}

func TestBudget(t *testing.T) {
	b := &Budget{R: strings.NewReader(strings.Repeat("x", 10)), Most: 4}
	if text, err := io.ReadAll(b); len(text) != 4 || err == nil {
		t.Errorf("%q, %v", text, err)
	}
	b.Renew()
	if text, err := io.ReadAll(b); len(text) != 4 || err == nil {
		t.Errorf("%q, %v", text, err)
	}
	b.Renew()
	if text, err := io.ReadAll(b); len(text) != 2 || err != nil {
		t.Errorf("%q, %v", text, err)
	}
}
