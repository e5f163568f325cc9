package daemon

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/lockfault/lockfault/faults/real"
	"github.com/lockfault/lockfault/internal/ports"
	"github.com/lockfault/lockfault/internal/proc"
)

func host(t *testing.T) *Host {
	t.Helper()
	if err := proc.Supported(); err != nil {
		t.Skip(err)
	}
	h, err := New(Options{Name: "test", Prefix: "lockfault-daemon-", Dir: t.TempDir(), Limit: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := h.Close(); err != nil {
			t.Error(err)
		}
		if left, err := os.ReadDir(h.options.Dir); err != nil || len(left) > 0 {
			t.Errorf("left behind: %v %v", left, err)
		}
	})
	return h
}

// says starts a shell that says so and then sleeps, or ends if it says nothing more.
func says(text string) Program {
	return Program{
		Command: func(int) (*exec.Cmd, error) { return exec.Command("/bin/sh", "-c", text), nil },
		Answers: func(context.Context, *proc.Proc, int) error { return nil },
	}
}

func TestDaemon(t *testing.T) {
	h := host(t)
	ctx, leave, err := h.Enter(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer leave()
	d, err := h.Add("a", says("echo one; exec sleep 1000"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := h.Add("a", says("")); err == nil {
		t.Error("there are two of a name")
	}
	if err := d.Pause(); !errors.Is(err, proc.ErrEnded) {
		t.Errorf("a pause before the start: %v", err)
	}
	if err := d.Start(ctx); err != nil {
		t.Fatal(err)
	}
	if err := d.Restart(ctx, nil); err == nil || err.Error() != "test: restart a: it is running: kill it first" {
		t.Errorf("a restart of one that runs: %v", err)
	}
	logged := func() string {
		dir := t.TempDir()
		if err := h.CopyLogs(dir); err != nil {
			t.Fatal(err)
		}
		text, err := os.ReadFile(filepath.Join(dir, "a.log"))
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	for deadline := time.Now().Add(time.Minute); logged() != "one\n"; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("it has logged %q", logged())
		}
	}
	h.NewPage()
	if got := logged(); got != "" {
		t.Errorf("a new page begins with %q", got)
	}
	if err := d.Kill(); err != nil {
		t.Fatal(err)
	}
	addr, between := d.Addr(), false
	if err := d.Restart(ctx, func() error { between = true; return nil }); err != nil || !between || d.Addr() != addr {
		t.Errorf("a restart: %v, %v, at %s and then at %s", err, between, addr, d.Addr())
	}
}

// TestStartFails checks that the error gives the reason of a server's end in one line, and that a
// server whose port was taken is tried on another port.
func TestStartFails(t *testing.T) {
	h := host(t)
	never := func(context.Context, *proc.Proc, int) error { return errors.New("not yet") }
	p := says("echo out of luck; echo; exit 3")
	p.Answers = never
	d, err := h.Add("ends", p)
	if err != nil {
		t.Fatal(err)
	}
	if err := d.Start(t.Context()); err == nil || err.Error() != "its process has ended (exit status 3); its log says: out of luck" {
		t.Error(err)
	}
	var asked []int
	p = Program{PortTaken: "in use", Command: func(port int) (*exec.Cmd, error) {
		if asked = append(asked, port); len(asked) < 3 {
			return exec.Command("/bin/sh", "-c", "echo it is in use; exit 1"), nil
		}
		return exec.Command("sleep", "1000"), nil
	}, Answers: func(context.Context, *proc.Proc, int) error {
		if len(asked) < 3 {
			return errors.New("not yet")
		}
		return nil
	}}
	if d, err = h.Add("moves", p); err != nil {
		t.Fatal(err)
	}
	if err := d.Start(t.Context()); err != nil || len(asked) != 3 || asked[0] == asked[1] || d.Addr() != ports.Address(asked[2]) {
		t.Errorf("%v, tried %v", err, asked)
	}
}

// TestOwnClock checks that a process with its own clock reads that clock's time.
func TestOwnClock(t *testing.T) {
	h := host(t)
	if err := h.CanMoveClocks(t.Context()); err != nil && os.Getenv("CI") == "" {
		t.Skip(err)
	}
	shows := func(d *Daemon) string {
		text, err := os.ReadFile(d.Log())
		if err != nil {
			t.Fatal(err)
		}
		return LastLine(string(text))
	}
	p := says("while date +%Y; do sleep 0.01; done")
	var d *Daemon
	p.Answers = func(context.Context, *proc.Proc, int) error {
		if shows(d) == "" {
			return errors.New("not yet")
		}
		return nil
	}
	d, err := h.Add("clocked", p)
	if err != nil {
		t.Fatal(err)
	}
	if err := d.SetClock(0, 1); !errors.Is(err, real.ErrNoClock) || err.Error() != "test: set the clock of clocked: servers' clocks can't be moved: it was started without one of its own" {
		t.Error(err)
	}
	if err := errors.Join(d.OwnClock(t.Context()), d.Start(t.Context())); err != nil {
		t.Fatal(err)
	}
	const years = 50 * 365 * 24 * time.Hour
	if err := d.SetClock(years, 1); err != nil {
		t.Fatal(err)
	}
	want := time.Now().Add(years).Format("2006")
	for deadline := time.Now().Add(time.Minute); shows(d) != want; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("it shows %s, not %s", shows(d), want)
		}
	}
	if info, err := os.Stat(d.shim); err != nil || info.Mode() != 0o755 {
		t.Errorf("whoever it runs as can't load the library: %v %v", info, err)
	}
}

// One that is linked statically has no library loaded into it, and so no clock of its own: it is refused, and ended.
func TestOwnClockNeedsADynamicProgram(t *testing.T) {
	h := host(t)
	if err := h.CanMoveClocks(t.Context()); err != nil && os.Getenv("CI") == "" {
		t.Skip(err)
	}
	dir := t.TempDir()
	source, static := filepath.Join(dir, "main.go"), filepath.Join(dir, "static")
	if err := os.WriteFile(source, []byte("package main\n\nimport \"time\"\n\nfunc main() { time.Sleep(time.Hour) }\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	build := exec.Command("go", "build", "-o", static, source)
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	var p *proc.Proc
	d, err := h.Add("static", Program{
		Command: func(int) (*exec.Cmd, error) { return exec.Command(static), nil },
		Answers: func(_ context.Context, is *proc.Proc, _ int) error { p = is; return nil },
	})
	if err != nil {
		t.Fatal(err)
	}
	err = errors.Join(d.OwnClock(t.Context()), d.Start(t.Context()))
	if !errors.Is(err, real.ErrNoClock) || !strings.Contains(err.Error(), static+" doesn't load the library that moves it") {
		t.Error(err)
	}
	if p.Alive() {
		t.Error("it was refused, and runs")
	}
}

func TestMember(t *testing.T) {
	options := ClusterOptions{Options: Options{Name: "test"}, Members: 3, NoClock: "it has none", NoEmpty: "it is another then"}
	c := &Cluster{Host: host(t), options: options}
	c.PeerProxy = c.NewWays()
	for _, test := range []struct {
		spec real.ServerSpec
		says string
	}{
		{real.ServerSpec{Node: "n4", Password: "p"}, `"n4" is no node of a cluster of 3`},
		{real.ServerSpec{Node: "n0", Password: "p"}, `"n0" is no node of a cluster of 3`},
		{real.ServerSpec{Node: "x", Password: "p"}, `"x" is no node of a cluster of 3`},
		{real.ServerSpec{Node: "n1"}, "a server must have a password"},
		{real.ServerSpec{Node: "n1", Password: "p", Clock: true}, real.ErrNoClock.Error() + ": it has none"},
	} {
		if _, err := c.AddMember(test.spec, Program{}); err == nil || err.Error() != test.says {
			t.Errorf("%+v: %v, want %s", test.spec, err, test.says)
		}
	}
	m, err := c.AddMember(real.ServerSpec{Name: "n3-0", Node: "n3", Password: "p"}, Program{})
	if err != nil || m.Number != 3 {
		t.Fatal(m, err)
	}
	if err := m.Restart(t.Context(), true); err == nil || err.Error() != "test: restart n3-0: it is another then" {
		t.Error(err)
	}
}
