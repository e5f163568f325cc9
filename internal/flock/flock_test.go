//go:build unix

package flock_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/lockfault/lockfault/internal/flock"
)

func TestTake(t *testing.T) {
	open := func() *os.File {
		f, err := os.OpenFile(filepath.Join(t.TempDir(), "..", "file"), os.O_CREATE|os.O_RDWR, 0o600)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { f.Close() })
		return f
	}
	first, second := open(), open()
	if err := flock.Take(first); err != nil {
		t.Fatal(err)
	}
	if err := flock.Take(second); !errors.Is(err, flock.ErrTaken) {
		t.Errorf("while another has it: %v", err)
	}
	first.Close()
	if err := flock.Take(second); err != nil {
		t.Errorf("when it is free: %v", err)
	}
	if err := flock.Take(first); err == nil || errors.Is(err, flock.ErrTaken) {
		t.Errorf("a closed file: %v", err)
	}
}
