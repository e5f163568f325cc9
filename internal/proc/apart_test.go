//go:build linux

package proc

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"testing"
	"time"
)

// What a server's children do that lead groups of their own, as those of PostgreSQL, is stopped and ended
// with what it does itself.
func TestFamilyApart(t *testing.T) {
	l, err := NewFamilyLauncher()
	if err != nil {
		t.Fatal(err)
	}
	said, writes, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("/bin/sh", "-c", "setsid sh -c 'echo $$; while :; do :; done' & wait")
	cmd.Stdout = writes
	p, err := l.Start(cmd)
	if err != nil {
		t.Fatal(err)
	}
	writes.Close()
	var id int
	if _, err := fmt.Fscan(said, &id); err != nil {
		t.Fatal(err)
	}
	if group(id) == p.PID() {
		t.Fatal("the child is of its parent's group")
	}
	for range 3 {
		if err := p.Pause(); err != nil {
			t.Fatal(err)
		}
		if s := state(id, id); s != 'T' {
			t.Errorf("the child is in state %c", s)
		}
		if err := p.Resume(); err != nil {
			t.Fatal(err)
		}
		for s := state(id, id); s == 'T'; s = state(id, id) {
			time.Sleep(time.Millisecond)
		}
	}
	if err := p.Pause(); err != nil {
		t.Fatal(err)
	}
	if err := p.Kill(); err != nil {
		t.Fatal(err)
	}
	if s := state(id, id); s != 0 && s != 'Z' {
		t.Errorf("the child is in state %c", s)
	}
	if err := p.Resume(); !errors.Is(err, ErrEnded) {
		t.Error(err)
	}
	if err := p.Kill(); err != nil {
		t.Error(err)
	}
	if err := l.Close(); err != nil {
		t.Error(err)
	}
}
