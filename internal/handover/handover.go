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
	"regexp"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/lockfault/lockfault/internal/below"
	"github.com/lockfault/lockfault/internal/tempdir"
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
// for need on stderr. The error says in one line how to install the program, and which files of that
// name are not of this version; the error is context.Canceled if ctx is done first.
func Replace(ctx context.Context, name, need string, stderr io.Writer) (status int, err error) {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		info = &debug.BuildInfo{}
	}
	file, others := installed(name, info)
	if file == "" {
		waiting := time.AfterFunc(patience, func() {
			fmt.Fprintf(stderr, "lockfault: preparing %s for %s ...\n", name, need)
		})
		file, err = build(ctx, name, info)
		waiting.Stop()
	}
	switch {
	case ctx.Err() != nil:
		return 0, context.Canceled
	case err != nil:
		return 0, fmt.Errorf("%s needs the program %s, which can't be built here (%v): go install %s/cmd/%s@%s%s", need, name, err,
			version.Module, name, released(info), others)
	}
	return replace(file, os.Args)
}

// installed returns a file of the program beside this executable or on PATH, or "" if there is no
// file of the same build. others says of each other file of that name why it is not taken.
func installed(name string, info *debug.BuildInfo) (file, others string) {
	dirs := filepath.SplitList(os.Getenv("PATH"))
	if self, err := os.Executable(); err == nil {
		dirs = slices.Insert(dirs, 0, filepath.Dir(self))
	}
	extension := ""
	if runtime.GOOS == "windows" {
		extension = ".exe"
	}
	var seen []string
	for _, dir := range dirs {
		file := filepath.Join(dir, name+extension)
		if !filepath.IsAbs(dir) || slices.Contains(seen, file) {
			continue
		}
		seen = append(seen, file)
		stat, err := os.Stat(file)
		if err != nil {
			continue
		}
		why := unfit(file, stat, name, info)
		if why == "" {
			return file, ""
		}
		others += fmt.Sprintf("; %s %s", file, why)
	}
	return "", others
}

// unfit returns why a file is not the program of the same build, or "" if it is.
func unfit(file string, stat os.FileInfo, name string, info *debug.BuildInfo) string {
	if !stat.Mode().IsRegular() { // reading a pipe would block
		return "is not a regular file"
	}
	if _, err := exec.LookPath(file); err != nil {
		return "is not executable"
	}
	other, err := buildinfo.ReadFile(file)
	if err != nil || other.Path != version.Module+"/cmd/"+name {
		return "is another program, or damaged"
	}
	if why := difference(info, other); why != "" {
		return why + ": to use it nevertheless, call it instead of lockfault"
	}
	return ""
}

// difference returns why two programs are not known to be built from the same source, which is the
// same version of the module, or the same commit without local changes. difference returns "" if
// they are. The result continues a sentence about the program other.
func difference(mine, other *debug.BuildInfo) string {
	const commit, modified = "vcs.revision", "vcs.modified"
	switch {
	case mine.Main.Path != other.Main.Path:
		return "is built in the module " + other.Main.Path + ", not in " + mine.Main.Path
	case mine.Main.Sum == "" && setting(mine, commit) == "":
		return "may differ from this program, in which no commit is recorded"
	case other.Main.Sum == "" && setting(other, commit) == "":
		return "has no commit recorded"
	case mine.Main.Version != other.Main.Version || mine.Main.Sum != other.Main.Sum:
		return "is version " + other.Main.Version + ", not " + mine.Main.Version
	case mine.Main.Sum != "":
		return ""
	case setting(mine, commit) != setting(other, commit):
		return "is commit " + setting(other, commit) + ", not " + setting(mine, commit)
	case setting(mine, modified) != "false" || setting(other, modified) != "false":
		return "may differ from this program: changes without a commit are in one of them"
	}
	return ""
}

func setting(info *debug.BuildInfo, key string) string {
	for _, s := range info.Settings {
		if s.Key == key {
			return s.Value
		}
	}
	return ""
}

// released returns the version for go install: the version or the commit of this program, or the
// latest version if neither is recorded.
func released(info *debug.BuildInfo) string {
	if info.Main.Sum == "" {
		return cmp.Or(setting(info, "vcs.revision"), "latest")
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
	// A go command that is killed leaves its temporary files.
	temp, err := tempdir.Make(os.Getenv("GOTMPDIR"), "lockfault-build-")
	if err != nil {
		return "", err
	}
	defer temp.Remove() // the next build removes what this one can't
	// With the commit, the program has the version of this one; go run leaves the commit out by
	// default, as in a program that go run has built.
	args := []string{"run", "-buildvcs=" + fmt.Sprint(setting(info, "vcs.revision") != ""), "-exec", "echo", target}
	if runtime.GOOS == "windows" {
		args[3] = "cmd /c echo"
	}
	// The first call builds, and may name a temporary file that is already removed. The second call
	// names the file in the cache.
	for range 2 {
		if file, err = output(ctx, dir, temp.Path(), args); err != nil {
			return "", err
		}
		if _, err = os.Stat(file); err == nil {
			return file, nil
		}
	}
	return "", err
}

// output returns the output of the go command, which builds for this system with temporary files in
// temp. The error is one line.
func output(ctx context.Context, dir, temp string, args []string) (string, error) {
	var stdout, stderr strings.Builder
	cmd := exec.Command("go", args...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = dir, &stdout, &stderr
	cmd.Env = append(os.Environ(), "GOTMPDIR="+temp, "GOOS="+runtime.GOOS, "GOARCH="+runtime.GOARCH)
	cmd.WaitDelay = 5 * time.Second
	err := run(ctx, cmd)
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
		verb := args[0]
		if verb == "-C" {
			verb = args[2]
		}
		return "", fmt.Errorf("go %s: %s", verb, cmp.Or(complaint(stderr.String()), err.Error()))
	}
	return strings.TrimSpace(stdout.String()), err
}

// position matches the beginning of a message about a line of a file.
var position = regexp.MustCompile(`^\S+:\d+: `)

// complaint returns the first line of the go command's standard error that says why the command
// failed, or else the last line.
func complaint(text string) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	for i := range lines {
		lines[i] = strings.TrimSpace(lines[i])
	}
	for i, line := range lines {
		why, of := strings.CutPrefix(line, "go: ")
		switch {
		case strings.HasPrefix(why, "downloading "), strings.HasPrefix(why, "finding module for package "), strings.HasPrefix(why, "found "):
		case of && strings.HasSuffix(why, ":") && i+1 < len(lines): // a heading
			return why + " " + lines[i+1]
		case of || position.MatchString(line):
			return why
		}
	}
	return lines[len(lines)-1]
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
