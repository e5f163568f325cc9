//go:build unix

package process_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/lockfault/lockfault/faults/process"
	"github.com/lockfault/lockfault/faults/process/processtest"
	"github.com/lockfault/lockfault/faults/real"
)

// program writes a script that is no server and returns its file.
func program(t *testing.T, mode os.FileMode, lines string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "a server")
	if err := os.WriteFile(file, []byte("#!/bin/sh\n"+lines), mode); err != nil {
		t.Fatal(err)
	}
	return file
}

func TestBinary(t *testing.T) {
	for _, c := range []struct{ name, binary, want string }{
		{"none of that name", "no-such-server", "no-such-server is not on PATH: install it (apt-get install redis-server, brew install redis) or name it with --redis-server FILE"},
		{"none of that file", filepath.Join(t.TempDir(), "none"), "no such file or directory"},
		{"a directory", t.TempDir(), "can't be started"},
		{"no program", program(t, 0o600, ""), "permission denied"},
		{"another program", program(t, 0o700, "echo grep 3.8"), `is not a Redis server (asked for its --version, it prints "grep 3.8")`},
		{"a failing program", program(t, 0o700, "exit 7"), "it prints nothing, exit status 7"},
		{"too old", program(t, 0o700, "echo Redis server v=5.0.14 sha=00000000:0 malloc=jemalloc-5.1.0 bits=64 build=0"), "is Redis 5.0.14, too old: install version 6 or newer"},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			_, err := process.New(process.Options{Binary: c.binary, Dir: dir})
			var typed *process.BinaryError
			if !errors.As(err, &typed) || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\n") {
				t.Errorf("%v; want %q in it", err, c.want)
			}
			if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
				t.Errorf("left: %v, %v", left, err)
			}
		})
	}
}

func TestNoBinaryOnPath(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	_, err := process.New(process.Options{})
	want := "redis-server is not on PATH: install it (apt-get install redis-server, brew install redis) or name it with --redis-server FILE"
	if err == nil || err.Error() != want {
		t.Errorf("%v; want %s", err, want)
	}
}

func TestValkeyServes(t *testing.T) {
	h := processtest.Host(t, process.Options{Binary: program(t, 0o700, "echo 'Valkey server v=8.1.0 sha=00000000:0 malloc=jemalloc-5.3.0 bits=64 build=0'")})
	if h.Version() != "Valkey 8.1.0" {
		t.Error(h.Version())
	}
}

// TestStartFails checks that a failed start gives its reason in one line, and leaves no process.
func TestStartFails(t *testing.T) {
	const version = "[ \"$1\" = --version ] && echo Redis server v=7.0.0 && exit\n"
	for _, c := range []struct{ name, lines, want string }{
		{"it ends", "echo '12:M 01 Jan 2026 00:00:00.000 # out of luck'; exit 3", "its process has ended (exit status 3); its log says: out of luck"},
		{"it ends silently", "exit 3", "its process has ended (exit status 3)"},
		{"it is killed", "kill -9 $$", "its process has ended (signal: killed)"},
		{"it hangs", "echo thinking; exec sleep 100", "no answer within 300ms"},
		{"ports are taken", "echo 'bind: Address already in use'; exit 1", "tried 50 ports"},
		{"it doesn't exec", "$(command -v redis-server || command -v valkey-server) \"$@\"; exit", "must do so with exec"},
		{"it can't be read", "echo '*** FATAL CONFIG FILE ERROR (Redis 6.0.0) ***'; echo; echo 'Bad directive'; exit 1", "its log says: Bad directive"},
	} {
		t.Run(c.name, func(t *testing.T) {
			limit := 3 * time.Minute
			if c.name == "it hangs" {
				limit = 300 * time.Millisecond
			}
			h := processtest.Host(t, process.Options{Binary: program(t, 0o700, version+c.lines), StartLimit: limit})
			s, err := h.Start(t.Context(), real.ServerSpec{Name: "n1", Password: password})
			if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\n") {
				t.Errorf("%v; want %q in it", err, c.want)
			}
			if s != nil {
				t.Error("there is a server all the same")
			}
		})
	}
}

func TestStartRefuses(t *testing.T) {
	h := processtest.Host(t, process.Options{})
	start(t, h, real.ServerSpec{Name: "n1"})
	for _, c := range []struct {
		spec real.ServerSpec
		want string
	}{
		{real.ServerSpec{Name: "n1", Password: password}, "there is one of that name"},
		{real.ServerSpec{Password: password}, "can't name a server"},
		{real.ServerSpec{Name: "../n2", Password: password}, "can't name a server"},
		{real.ServerSpec{Name: "n2"}, "must have a password"},
		{real.ServerSpec{Name: "n2", Password: "a\nport 1"}, "printable"},
	} {
		if _, err := h.Start(t.Context(), c.spec); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: %v; want %q in it", c.spec, err, c.want)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := h.Start(ctx, real.ServerSpec{Name: "n3", Password: password}); !errors.Is(err, context.Canceled) {
		t.Errorf("with a context that is done: %v", err)
	}
}
