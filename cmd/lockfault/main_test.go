package main

import (
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/lockfault/lockfault"
	"github.com/lockfault/lockfault/internal/below"
	"github.com/lockfault/lockfault/internal/services"
)

// TestFullNames compares the names of services and locks that only the full program has with what
// the full program has.
func TestFullNames(t *testing.T) {
	var names, locks []string
	for _, s := range services.All() {
		names = append(names, s.Name())
		for _, lock := range s.Strategies() {
			locks = append(locks, lock.Name)
		}
	}
	if got := full(); !slices.Equal(got.Services, names) || !slices.Equal(got.Strategies, locks) {
		t.Errorf("full names %q and %q, want %q and %q", got.Services, got.Strategies, names, locks)
	}
}

// TestSlowHandOver checks that the program builds the full program from its own source, and ends with its
// exit status.
func TestSlowHandOver(t *testing.T) {
	if err := below.CheckParents("main.go"); err != nil {
		t.Skipf("the program builds nothing from here: %v", err)
	}
	program := filepath.Join(t.TempDir(), "lockfault")
	if out, err := exec.Command("go", "build", "-o", program, ".").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, c := range []struct {
		args   []string
		status int
		says   string
	}{
		{[]string{"list", "services"}, lockfault.ExitOK, "zookeeper-lock-zxid"},
		{[]string{"trace", "etcd-mutex", "no-such-scenario"}, lockfault.ExitUsage, `unknown scenario "no-such-scenario"`},
	} {
		cmd := exec.Command(program, c.args...)
		cmd.Dir = t.TempDir()
		out, err := cmd.CombinedOutput()
		if got := cmd.ProcessState.ExitCode(); got != c.status || !strings.Contains(string(out), c.says) {
			t.Errorf("%q: status %d (%v), want %d\n%swant %q", c.args, got, err, c.status, out, c.says)
		}
	}
}
