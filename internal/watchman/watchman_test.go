//go:build unix

package watchman

import (
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
)

// A watchman hears whole lines, and does his work when the pipe ends. He is in no
// group that others end.
func TestWatchman(t *testing.T) {
	file := filepath.Join(t.TempDir(), "heard")
	cmd := exec.Command("/bin/sh", "-c", `sort >"$1"`, "sh", file)
	w, err := Start(cmd)
	if err != nil {
		t.Fatal(err)
	}
	if group, err := syscall.Getpgid(cmd.Process.Pid); err != nil || group != cmd.Process.Pid {
		t.Errorf("its group is %d, %v", group, err)
	}
	var told sync.WaitGroup
	for _, line := range []string{"one", "two", "three"} {
		told.Go(func() {
			if err := w.Tell(line); err != nil {
				t.Error(err)
			}
		})
	}
	told.Wait()
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if text, err := os.ReadFile(file); err != nil || string(text) != "one\nthree\ntwo\n" {
		t.Errorf("heard %q, %v", text, err)
	}
	if err := w.Tell("late"); err == nil {
		t.Error("one who has gone is told something")
	}
}

func TestNobody(t *testing.T) {
	var w *Watchman
	if err := w.Tell("x"); err != nil {
		t.Error(err)
	}
	if err := w.Close(); err != nil {
		t.Error(err)
	}
	if _, err := Start(exec.Command(filepath.Join(t.TempDir(), "none"))); err == nil {
		t.Error("a program that isn't there was started")
	}
}
