// Package handover replaces a program of this module by a larger program of the same version. A
// small program compiles and starts fast; the larger one is compiled when it is first needed.
package handover

import (
	"cmp"
	"context"
	"debug/buildinfo"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strings"
	"time"

	"github.com/lockfault/lockfault/internal/below"
	"github.com/lockfault/lockfault/internal/version"
)

// patience is the time after which a message explains the wait for the go command, which needs less
// if the program is already built.
const patience = time.Second

// Replace replaces this process by the program name, whose main package is cmd/NAME of this module,
// with the same arguments, environment and standard streams. Where the system cannot replace a
// process, Replace runs the program and returns its exit status.
//
// The program has the same version as this one: a file NAME beside this executable or on PATH with
// the same module version or the same commit, or else the result of "go run" of this program's
// module version or source directory. Replace blocks until the program is built, and explains a wait
// for need on stderr. The error says in one line how to install the program; the error is
// context.Canceled if ctx is done first.
func Replace(ctx context.Context, name, need string, stderr io.Writer) (status int, err error) {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		info = &debug.BuildInfo{}
	}
	file := installed(name, info)
	if file == "" {
		waiting := time.AfterFunc(patience, func() {
			fmt.Fprintf(stderr, "lockfault: building %s for %s (once) ...\n", name, need)
		})
		file, err = build(ctx, name, info)
		waiting.Stop()
	}
	switch {
	case ctx.Err() != nil:
		return 0, context.Canceled
	case err != nil:
		return 0, fmt.Errorf("%s needs the program %s, which can't be built here (%v): go install %s/cmd/%s@%s", need, name, err,
			version.Module, name, released(info))
	}
	return replace(file)
}

// installed returns a file of the program beside this executable or on PATH, or "" if there is no
// file of the same build.
func installed(name string, info *debug.BuildInfo) string {
	var files []string
	if self, err := os.Executable(); err == nil {
		files = append(files, filepath.Join(filepath.Dir(self), name+filepath.Ext(self)))
	}
	if file, err := exec.LookPath(name); err == nil {
		files = append(files, file)
	}
	for _, file := range files {
		if other, err := buildinfo.ReadFile(file); err == nil && other.Path == version.Module+"/cmd/"+name && sameSource(info, other) {
			return file
		}
	}
	return ""
}

// sameSource reports whether two programs are known to be built from the same source: the same
// version of the module, or the same commit without local changes.
func sameSource(a, b *debug.BuildInfo) bool {
	if a.Main.Path != b.Main.Path || a.Main.Version != b.Main.Version || a.Main.Sum != b.Main.Sum {
		return false
	}
	commit := setting(a, "vcs.revision")
	return a.Main.Sum != "" || commit != "" && commit == setting(b, "vcs.revision") &&
		setting(a, "vcs.modified") == "false" && setting(b, "vcs.modified") == "false"
}

func setting(info *debug.BuildInfo, key string) string {
	for _, s := range info.Settings {
		if s.Key == key {
			return s.Value
		}
	}
	return ""
}

// released returns the version for go install: that of this program, or the latest if this program
// is built from a working copy.
func released(info *debug.BuildInfo) string {
	if info.Main.Sum == "" {
		return "latest"
	}
	return info.Main.Version
}

// build builds the program and returns its file, which is in the cache of the go command.
func build(ctx context.Context, name string, info *debug.BuildInfo) (file string, err error) {
	target, dir := version.Module+"/cmd/"+name, ""
	if info.Main.Sum != "" {
		target += "@" + info.Main.Version
	} else if dir, err = sourceDir(); err != nil {
		return "", err
	}
	// With the commit, the program has the version of this one; go run leaves the commit out by
	// default, as in a program that go run has built.
	args := []string{"run", "-buildvcs=" + fmt.Sprint(setting(info, "vcs.revision") != ""), "-exec", "echo", target}
	if runtime.GOOS == "windows" {
		args[3] = "cmd /c echo"
	}
	// The first call builds, and may name a temporary file that is already removed. The second call
	// names the file in the cache.
	for range 2 {
		if file, err = output(ctx, dir, args); err != nil {
			return "", err
		}
		if _, err = os.Stat(file); err == nil {
			return file, nil
		}
	}
	return "", err
}

// output returns the output of the go command. The error is one line.
func output(ctx context.Context, dir string, args []string) (string, error) {
	var stdout, stderr strings.Builder
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = dir, &stdout, &stderr
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) } // go removes its temporary files
	cmd.WaitDelay = 5 * time.Second
	err := cmd.Run()
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
		lines := strings.Split(strings.TrimSpace(stderr.String()), "\n")
		return "", fmt.Errorf("go run: %s", cmp.Or(lines[len(lines)-1], err.Error()))
	}
	return strings.TrimSpace(stdout.String()), err
}

// sourceDir returns the directory of the module that this program is built from.
func sourceDir() (string, error) {
	_, file, _, _ := runtime.Caller(0)
	dir := filepath.Dir(filepath.Dir(filepath.Dir(filepath.FromSlash(file))))
	if !filepath.IsAbs(dir) {
		return "", errors.New("this program does not know its source directory")
	}
	if _, err := os.Stat(filepath.Join(dir, "go.mod")); err != nil {
		return "", fmt.Errorf("the source directory is gone: %w", err)
	}
	// The directory may be gone, and have been made again by somebody else.
	return dir, below.CheckParents(filepath.Join(dir, "go.mod"))
}
