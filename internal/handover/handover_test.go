//go:build unix

package handover_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/lockfault/lockfault/internal/handover"
)

// asSmall makes the test binary the program that hands over.
const asSmall = "LOCKFAULT_TEST_SMALL"

func TestMain(m *testing.M) {
	if os.Getenv(asSmall) == "" {
		os.Exit(m.Run())
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	_, err := handover.Replace(ctx, "full", "--world docker", os.Stderr)
	fmt.Fprintln(os.Stderr, err)
	os.Exit(3)
}

// small returns a command of the small program, for which the script golang is the go command. The
// script finds the full program in $FULL.
func small(t *testing.T, golang, full string, args ...string) (cmd *exec.Cmd, stdout, stderr *strings.Builder) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for name, text := range map[string]string{"go": golang, "the-full-program": full} {
		if text == "" {
			continue
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/sh\n"+text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	cmd = exec.Command(self, args...)
	stdout, stderr = new(strings.Builder), new(strings.Builder)
	cmd.Stdout, cmd.Stderr = stdout, stderr
	path := dir + ":/usr/bin:/bin"
	if golang == "" {
		path = dir
	}
	cmd.Env = []string{asSmall + "=1", "PATH=" + path, "FULL=" + filepath.Join(dir, "the-full-program")}
	return cmd, stdout, stderr
}

// TestReplace checks that the full program takes the place of the small one: same process, same
// arguments and streams, and its own exit status.
func TestReplace(t *testing.T) {
	cmd, stdout, stderr := small(t, `echo "$FULL"`, `read line; echo "$$ $line $*"; echo oops >&2; exit 7`, "run", "--world", "docker x")
	cmd.Stdin = strings.NewReader("input\n")
	err := cmd.Run()
	if got := cmd.ProcessState.ExitCode(); got != 7 {
		t.Errorf("exit status %d (%v), want 7", got, err)
	}
	if want := fmt.Sprintf("%d input run --world docker x\n", cmd.Process.Pid); stdout.String() != want {
		t.Errorf("stdout %q, want %q", stdout, want)
	}
	if stderr.String() != "oops\n" {
		t.Errorf("stderr %q, want only that of the full program", stderr)
	}
}

// TestReplaceSignal checks that a signal to the program ends the full program.
func TestReplaceSignal(t *testing.T) {
	cmd, _, _ := small(t, `echo "$FULL"`, `kill -TERM $$; sleep 60`)
	_ = cmd.Run()
	if status := cmd.ProcessState.Sys().(syscall.WaitStatus); !status.Signaled() || status.Signal() != syscall.SIGTERM {
		t.Errorf("status %v, want SIGTERM", cmd.ProcessState)
	}
}

// TestReplaceBuilds checks the arguments of the go command, the message about the wait, and that a
// temporary file of the first call is not mistaken for the program.
func TestReplaceBuilds(t *testing.T) {
	cmd, stdout, stderr := small(t, `
case $* in *github.com/lockfault/lockfault/cmd/full) ;; *) echo "unexpected: $*" >&2; exit 1;; esac
[ -f go.mod ] || exit 1
if [ -f "$FULL.built" ]; then echo "$FULL"; else sleep 2; echo "$FULL.gone"; : >"$FULL.built"; fi`, `echo full`)
	if err := cmd.Run(); err != nil || stdout.String() != "full\n" {
		t.Errorf("stdout %q, error %v, want the full program", stdout, err)
	}
	if want := "lockfault: preparing full for --world docker ...\n"; stderr.String() != want {
		t.Errorf("stderr %q, want %q", stderr, want)
	}
}

// TestReplaceFails checks that one line says how to install a program that cannot be built.
func TestReplaceFails(t *testing.T) {
	const install = ": go install github.com/lockfault/lockfault/cmd/full@latest\n"
	for _, c := range []struct{ golang, why string }{
		{"", `(exec: "go": executable file not found in $PATH)`},
		{"echo '# lockfault' >&2; echo 'disk full' >&2; exit 1", "(go run: disk full)"},
		{`echo "$FULL.gone"`, "no such file or directory)"},
		{`printf 'go: downloading x v1\n# lockfault/x\n\tx.go:3:4: undefined: y\n\tx.go:9:9: undefined: z\nmore\n' >&2; exit 1`, "(go run: x.go:3:4: undefined: y)"},
		{`printf 'go: x@v1: reading proxy: 404\n\tserver response: not found\n' >&2; exit 1`, "(go run: x@v1: reading proxy: 404)"},
		{`printf 'go: errors parsing go.mod:\n\tgo.mod:3: unknown directive\n' >&2; exit 1`, "(go run: errors parsing go.mod: go.mod:3: unknown directive)"},
	} {
		cmd, stdout, stderr := small(t, c.golang, "")
		_ = cmd.Run()
		got := stderr.String()
		if !strings.HasPrefix(got, "--world docker needs the program full, which can't be built here (") || !strings.HasSuffix(got, c.why+install) || strings.Count(got, "\n") != 1 || stdout.Len() > 0 {
			t.Errorf("stderr %q, stdout %q, want one line with %q", got, stdout, c.why)
		}
		if got := cmd.ProcessState.ExitCode(); got != 3 {
			t.Errorf("exit status %d, want 3", got)
		}
	}
}

// TestReplaceBuildsForThisSystem checks that the program is built for the system on which it runs,
// whatever the environment says.
func TestReplaceBuildsForThisSystem(t *testing.T) {
	cmd, _, stderr := small(t, `echo "$GOOS/$GOARCH" >&2; exit 1`, "")
	cmd.Env = append(cmd.Env, "GOOS=plan9", "GOARCH=mips")
	_ = cmd.Run()
	if want := "(go run: " + runtime.GOOS + "/" + runtime.GOARCH + ")"; !strings.Contains(stderr.String(), want) {
		t.Errorf("stderr %q, want %q", stderr, want)
	}
}

// TestReplaceSkips checks that a file on PATH that cannot be the program is not taken, and that the
// refusal says why. Reading the named pipe would block.
func TestReplaceSkips(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name, why string
		place     func(file string) error
	}{
		{"mode 644", "is not executable", func(file string) error { return os.WriteFile(file, []byte("#!/bin/sh\n"), 0o644) }},
		{"named pipe", "is not a regular file", func(file string) error { return syscall.Mkfifo(file, 0o755) }},
		{"truncated", "is another program, or damaged", func(file string) error { return os.WriteFile(file, []byte("\x7fELF"), 0o755) }},
		{"other program", "is another program, or damaged", func(file string) error { return os.Symlink(self, file) }},
	} {
		t.Run(c.name, func(t *testing.T) {
			cmd, _, stderr := small(t, `echo no >&2; exit 1`, "")
			file := filepath.Join(t.TempDir(), "full")
			if err := c.place(file); err != nil {
				t.Fatal(err)
			}
			cmd.Env = append(cmd.Env, cmd.Env[1]+":.:"+filepath.Dir(file))
			stop := time.AfterFunc(time.Minute, func() { _ = cmd.Process.Kill() })
			defer stop.Stop()
			_ = cmd.Run()
			if want := "; " + file + " " + c.why + "\n"; !strings.HasSuffix(stderr.String(), want) {
				t.Errorf("stderr %q, want %q", stderr, want)
			}
		})
	}
}

// TestReplaceInterrupted checks that a signal ends the go command with its children and removes its
// temporary files.
func TestReplaceInterrupted(t *testing.T) {
	for _, sent := range []os.Signal{os.Interrupt, os.Kill} {
		t.Run(sent.String(), func(t *testing.T) {
			cmd, _, stderr := small(t, `trap '' INT TERM; sleep 600 & : >"$GOTMPDIR/big"; echo $! >"$FULL.new"; mv "$FULL.new" "$FULL.begun"; wait`, "")
			temp := t.TempDir()
			cmd.Env = append(cmd.Env, "TMPDIR="+temp)
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			begun := strings.TrimPrefix(cmd.Env[2], "FULL=") + ".begun"
			var child int
			await(t, "the go command was not started", func() bool {
				text, err := os.ReadFile(begun)
				child, _ = strconv.Atoi(strings.TrimSpace(string(text)))
				return err == nil
			})
			if err := cmd.Process.Signal(sent); err != nil {
				t.Fatal(err)
			}
			_ = cmd.Wait()
			if got := stderr.String(); sent == os.Interrupt && !strings.HasSuffix(got, context.Canceled.Error()+"\n") {
				t.Errorf("stderr %q, want %v", got, context.Canceled)
			}
			await(t, "a child of the go command still runs", func() bool { return syscall.Kill(child, 0) != nil })
			await(t, "temporary files remain", func() bool {
				left, err := os.ReadDir(temp)
				return err == nil && len(left) == 0
			})
		})
	}
}

// await waits until the condition holds, for at most a minute.
func await(t *testing.T, otherwise string, condition func() bool) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); !condition(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal(otherwise)
		}
	}
}
