//go:build unix

package docker_test

import (
	"bufio"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"testing"
	"time"

	"github.com/lockfault/lockfault/faults/docker"
	"github.com/lockfault/lockfault/faults/docker/dockertest"
)

// Whoever is killed leaves no container behind, running or paused, no network
// and no directory.
func TestKilledHostLeavesNothing(t *testing.T) {
	if !dockertest.Ready(t) {
		return
	}
	dir := t.TempDir()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), asParent+"="+dir)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	var addr string
	for range 2 {
		if !lines.Scan() || strings.HasPrefix(lines.Text(), "error") {
			t.Fatal(lines.Text(), cmd.Wait())
		}
		addr = lines.Text()
	}
	c := engine(t)
	label, _ := run(t, c, addr)
	if containers, networks := ours(t, c, label); len(containers) != 2 || len(networks) != 2 {
		t.Fatalf("containers %v, networks %v", containers, networks)
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait() // it was killed
	begun := time.Now()
	eventually(t, "the engine has nothing of it", func() bool {
		containers, networks := ours(t, c, label)
		return len(containers)+len(networks) == 0
	})
	t.Logf("gone after %v", time.Since(begun))
	eventually(t, "the directory is gone", func() bool {
		left, err := os.ReadDir(dir)
		return err == nil && len(left) == 0
	})
}

// A watchman who was told nothing has nothing to do.
func TestWatchmanWithoutOrders(t *testing.T) {
	t.Cleanup(func() { signal.Reset() }) // what a watchman ignores
	if err := docker.Watch(strings.NewReader("")); err != nil {
		t.Error(err)
	}
	if err := docker.Watch(strings.NewReader(`{"run":`)); err == nil {
		t.Error("half an order was taken for a whole one")
	}
}
