// Package clock moves the clocks of other processes: a small library, which
// [Build] compiles out of embedded C, is loaded into them and answers for the
// system, as a [File] that they share with this process says.
//
// It works on Linux, on x86_64 and aarch64, with glibc and musl alike, and in
// containers on this machine's kernel. Of this module the package imports child and tempdir, to compile.
package clock

import (
	"bytes"
	"context"
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/lockfault/lockfault/internal/proc"
	"github.com/lockfault/lockfault/internal/tempdir"
)

//go:embed shim/clock.c
var source []byte

// flags make a library that needs no other.
const flags = "-shared -fPIC -O2 -nostdlib -ffreestanding -fno-stack-protector -fvisibility=hidden"

// Build returns the file of the library. Build compiles the library if no directory has a sound one,
// and removes unsound ones. Build tries the directories in turn, makes those that are not there, and uses
// only those that no other user can write to; if none will do, the error is that of the last one. The
// compiler is a command with its arguments, cc if empty. Any number of processes may build at once. Build
// blocks while the compiler runs, or until ctx is done.
func Build(ctx context.Context, compiler string, dirs ...string) (string, error) {
	if runtime.GOOS != "linux" {
		return "", fmt.Errorf("clock: the shim is for Linux, and this is %s", runtime.GOOS)
	}
	for _, dir := range dirs {
		if file := cached(ctx, dir); file != "" {
			return file, nil
		}
	}
	err := errors.New("clock: no directory to build in")
	for _, dir := range dirs {
		var work *tempdir.Dir
		if work, err = makeWork(dir); err != nil {
			continue
		}
		defer work.Remove() // what stays, the next build removes
		object := filepath.Join(work.Path(), "clock.so")
		if err := compile(ctx, compiler, object); err != nil {
			return "", err
		}
		text, err := os.ReadFile(object)
		if err != nil {
			return "", fmt.Errorf("clock: %w", err)
		}
		if err := loads(ctx, object); err != nil {
			return "", err
		}
		// Whole or not at all; another process's library is the same.
		file := filepath.Join(dir, libraryName(digest(text)))
		if err := os.Rename(object, file); err != nil {
			return "", fmt.Errorf("clock: %w", err)
		}
		return file, nil
	}
	return "", err
}

// makeWork makes a directory to compile in, in a directory that only this user can write to.
func makeWork(dir string) (*tempdir.Dir, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("clock: %w", err)
	}
	if err := private(dir); err != nil {
		return nil, err
	}
	work, err := tempdir.Make(dir, "building-clock-")
	if err != nil {
		return nil, fmt.Errorf("clock: %w", err)
	}
	return work, nil
}

// cached returns the file of a sound library in a directory, or empty. It removes unsound ones.
func cached(ctx context.Context, dir string) string {
	if private(dir) != nil {
		return ""
	}
	files, _ := filepath.Glob(filepath.Join(escape(dir), libraryName("*"))) // the pattern is well formed
	for _, file := range files {
		if info, err := os.Lstat(file); err != nil || !info.Mode().IsRegular() {
			continue
		}
		text, err := os.ReadFile(file)
		if err == nil && filepath.Base(file) == libraryName(digest(text)) && loads(ctx, file) == nil {
			return file
		}
		if ctx.Err() == nil {
			_ = os.Remove(file) // a new one takes its place anyway
		}
	}
	return ""
}

// escape returns a path as patterns have it.
func escape(path string) string {
	return strings.NewReplacer(`\`, `\\`, "*", `\*`, "?", `\?`, "[", `\[`).Replace(path)
}

// loads returns nil if the system's loader loads the library into a program, and else the loader's reason.
// A shell that is linked statically loads nothing and proves nothing.
func loads(ctx context.Context, file string) error {
	cmd := exec.Command("/bin/sh", "-c", ":")
	cmd.Env = []string{"LD_PRELOAD=" + file}
	said, err := output(ctx, cmd)
	line, _, _ := strings.Cut(strings.TrimSpace(string(said)), "\n")
	switch {
	case ctx.Err() != nil:
		return fmt.Errorf("clock: load the shim: %w", context.Cause(ctx))
	case errors.Is(err, os.ErrNotExist):
		return nil // no shell, no proof
	case err != nil:
		return fmt.Errorf("clock: load the shim %s: %w: %s", file, err, line)
	case line != "":
		return fmt.Errorf("clock: load the shim %s: %s", file, line)
	}
	return nil
}

// Library is [Build] in the cache directory, or where that can't be written to in the caller's own.
func Library(ctx context.Context, compiler, own string) (string, error) {
	dirs := []string{own}
	if cache, err := CacheDir(); err == nil {
		dirs = []string{cache, own}
	}
	return Build(ctx, compiler, dirs...)
}

// CacheDir is where the library outlives its builder: lockfault in the user's
// cache directory.
func CacheDir() (string, error) {
	dir, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("clock: %w", err)
	}
	return filepath.Join(dir, "lockfault"), nil
}

// libraryName returns the name of a library of that digest. The rest of the name depends on all that the
// library is made of.
func libraryName(digest string) string {
	sum := sha256.Sum256([]byte(runtime.GOARCH + "\n" + flags + "\n" + string(source)))
	return "clock-" + hex.EncodeToString(sum[:8]) + "-" + digest + ".so"
}

// digest identifies a library's content.
func digest(text []byte) string {
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:16])
}

func compile(ctx context.Context, compiler, object string) error {
	words := strings.Fields(compiler)
	if len(words) == 0 {
		words = []string{"cc"}
	}
	path, err := exec.LookPath(words[0])
	if err != nil {
		return fmt.Errorf("clock: no C compiler (%w): install one (apt-get install gcc), or name it with CC", err)
	}
	args := append(words[1:len(words):len(words)], strings.Fields(flags)...)
	cmd := exec.Command(path, append(args, "-o", object, "-x", "c", "-")...)
	cmd.Stdin = bytes.NewReader(source)
	cmd.Env = append(os.Environ(), "TMPDIR="+filepath.Dir(object)) // for what the compiler makes on the way
	out, err := output(ctx, cmd)
	if ctx.Err() != nil {
		return fmt.Errorf("clock: compile the shim: %w", context.Cause(ctx))
	}
	if err != nil {
		line, _, _ := strings.Cut(strings.TrimSpace(string(out)), "\n")
		return fmt.Errorf("clock: %s can't compile the shim (%w): %s", words[0], err, line)
	}
	// What is kept must not be what a broken compiler left.
	if text, err := os.ReadFile(object); err != nil || !bytes.HasPrefix(text, []byte("\x7fELF")) {
		return fmt.Errorf("clock: %s can't compile the shim: what it made is no library", words[0])
	}
	return nil
}

// output runs a command, whose processes end with this process, and returns what the command prints.
func output(ctx context.Context, cmd *exec.Cmd) ([]byte, error) {
	launcher, err := proc.NewLauncher()
	if err != nil {
		return nil, err
	}
	var said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &said, &said
	p, err := launcher.Start(cmd)
	if err != nil {
		return nil, errors.Join(err, launcher.Close())
	}
	select {
	case <-p.Ended():
		err = p.Status()
	case <-ctx.Done():
		err = p.Kill()
	}
	return said.Bytes(), errors.Join(err, launcher.Close())
}

// Env returns what a process must have in its environment: the library's file
// and the clock's, by the names that they have in its eyes.
func Env(library, file string) []string {
	return []string{"LD_PRELOAD=" + library, "LOCKFAULT_CLOCK=" + file}
}
