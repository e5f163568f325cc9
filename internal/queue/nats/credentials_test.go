package nats

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestNewCredentials checks that the key of a queue is created once, and must not be readable by
// another user.
func TestNewCredentials(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "queue.key")
	user, err := NewCredentials(file)
	if err != nil || !strings.HasPrefix(user, "U") {
		t.Fatal(user, err)
	}
	if again, err := NewCredentials(file); err != nil || again != user {
		t.Errorf("%s, %v, want %s", again, err, user)
	}
	if about, err := os.Stat(file); err != nil || about.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v", about.Mode(), err)
	}
	if err := os.Chmod(file, 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := NewCredentials(file); err == nil || !strings.Contains(err.Error(), "may be read by others") {
		t.Error(err)
	}
	if err := os.WriteFile(filepath.Join(filepath.Dir(file), "other"), []byte("SU-no-seed"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := NewCredentials(filepath.Join(filepath.Dir(file), "other")); err == nil || !strings.Contains(err.Error(), "holds no seed") {
		t.Error(err)
	}
	if os.Geteuid() != 0 {
		return
	}
	if err := os.Chmod(file, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chown(file, 65534, 65534); err != nil {
		t.Fatal(err)
	}
	if _, err := NewCredentials(file); err == nil || !strings.Contains(err.Error(), "belongs to another user") {
		t.Error(err)
	}
}

// TestCheckDir checks that a queue stores nothing in a directory that another user could redirect.
func TestCheckDir(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := CheckDir(dir); err != nil {
		t.Error(err)
	}
	if err := os.Symlink(t.TempDir(), filepath.Join(dir, "jetstream")); err != nil {
		t.Fatal(err)
	}
	if err := CheckDir(dir); err == nil || !strings.Contains(err.Error(), "jetstream in ") {
		t.Error(err)
	}
	open := t.TempDir()
	if err := os.Chmod(open, 0o777); err != nil {
		t.Fatal(err)
	}
	if err := CheckDir(open); err == nil || !strings.Contains(err.Error(), "other users may write to it") {
		t.Error(err)
	}
}
