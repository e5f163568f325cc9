package cli_test

import (
	"bufio"
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/lockfault/lockfault/internal/queue"
	"github.com/lockfault/lockfault/internal/queue/natsserver"
)

// A worker is of the same build as who asks if its file and its strategies are the same, wherever it is.
func TestBuildsOfWorkers(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(context.Background())
	addresses := make(chan queue.Address, 1)
	var serving sync.WaitGroup
	serving.Go(func() {
		defer close(addresses)
		if err := (natsserver.Engine{}).Serve(ctx, queue.ServerOptions{Listen: "127.0.0.1:0", Dir: t.TempDir()}, func(url, credentials string) { addresses <- queue.Address{URLs: url, Credentials: credentials} }); err != nil {
			t.Error(err)
		}
	})
	defer serving.Wait()
	defer cancel()
	at, ok := <-addresses
	if !ok {
		return
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	// copied returns the path of a copy of this program with something behind it.
	copied := func(behind string) string {
		text, err := os.ReadFile(self)
		if err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(t.TempDir(), "lockfault")
		if err := os.WriteFile(path, append(text, behind...), 0o700); err != nil {
			t.Fatal(err)
		}
		return path
	}
	// build returns what a worker says that it takes.
	build := func(path, name string) string {
		var cmd *exec.Cmd
		var out io.ReadCloser
		for {
			cmd = exec.Command(path)
			cmd.Args = []string{name, "worker", "--queue", at.URLs, "--queue-creds", at.Credentials, "--jobs", "1"}
			cmd.Env = append(os.Environ(), "GORACE=atexit_sleep_ms=0")
			cmd.Stderr = os.Stderr
			var err error
			if out, err = cmd.StdoutPipe(); err != nil {
				t.Fatal(err)
			}
			if err = cmd.Start(); err == nil {
				break
			}
			// A process that another test forks at this moment has the written file open until its exec.
			if !errors.Is(err, syscall.ETXTBSY) {
				t.Fatal(err)
			}
			time.Sleep(10 * time.Millisecond)
		}
		line, err := bufio.NewReader(out).ReadString('\n')
		if err != nil {
			t.Errorf("%s: %q, %v", path, line, err)
		}
		_ = cmd.Process.Signal(os.Interrupt)
		_, _ = io.Copy(io.Discard, out)
		_ = cmd.Wait()
		said, _, _ := strings.Cut(line, ", as worker ") // who signs is another one each time
		return said
	}
	here := build(self, "lockfault")
	if there := build(copied(""), "lockfault"); there != here {
		t.Errorf("a copy: %s, want %s", there, here)
	}
	if other := build(copied("x"), "lockfault"); other == here {
		t.Errorf("another file: %s", other)
	}
	if other := build(self, "theirs"); other == here {
		t.Errorf("other strategies: %s", other)
	}
}
