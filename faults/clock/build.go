// Package clock changes the clocks of other processes. [Build] compiles a small library from
// embedded C. A process that loads the library gets its time from a [File], which it shares with
// this process.
//
// A [File] and its settings come in; environment variables for a process go out through [Env]. The
// package works on Linux, on x86_64 and aarch64, with glibc and musl, and in containers on this
// machine's kernel, but not for statically linked programs. The package imports only proc and
// tempdir of this module, to compile.
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

// flags are the compiler flags for a library that needs no other library.
const flags = "-shared -fPIC -O2 -nostdlib -ffreestanding -fno-stack-protector -fvisibility=hidden"

// Build returns the path of the library. Build compiles the library if no directory has a valid
// one, and removes invalid ones. Build tries the directories in turn and creates missing ones.
// Build uses only directories that no other user can write to; if none is usable, it returns the
// error of the last one.
//
// compiler is a command with its arguments; empty means cc. Any number of processes may call Build
// at once. Build blocks while the compiler runs, or until ctx is done.
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
		defer work.Remove() // the next build removes what remains
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
		// Rename is atomic, and another process's library has the same content.
		file := filepath.Join(dir, libraryName(digest(text)))
		if err := os.Rename(object, file); err != nil {
			return "", fmt.Errorf("clock: %w", err)
		}
		return file, nil
	}
	return "", err
}

// makeWork creates a temporary directory for the compiler in dir, which only this user may be able
// to write to.
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

// cached returns the path of a valid library in a directory, or empty. cached removes invalid ones.
func cached(ctx context.Context, dir string) string {
	if private(dir) != nil {
		return ""
	}
	files, _ := filepath.Glob(filepath.Join(escape(dir), libraryName("*"))) // cannot fail: the pattern is well formed
	for _, file := range files {
		if info, err := os.Lstat(file); err != nil || !info.Mode().IsRegular() {
			continue
		}
		text, err := os.ReadFile(file)
		if err == nil && filepath.Base(file) == libraryName(digest(text)) && loads(ctx, file) == nil {
			return file
		}
		if ctx.Err() == nil {
			_ = os.Remove(file) // an error is harmless: a new library replaces the file
		}
	}
	return ""
}

// escape returns a path with the special characters of patterns escaped.
func escape(path string) string {
	return strings.NewReplacer(`\`, `\\`, "*", `\*`, "?", `\?`, "[", `\[`).Replace(path)
}

// loads returns nil if the system's loader loads the library into a program, and otherwise the
// loader's reason. A statically linked shell loads nothing, so loads then returns nil without
// proof.
func loads(ctx context.Context, file string) error {
	cmd := exec.Command("/bin/sh", "-c", ":")
	cmd.Env = []string{"LD_PRELOAD=" + file}
	said, err := output(ctx, cmd)
	line, _, _ := strings.Cut(strings.TrimSpace(string(said)), "\n")
	switch {
	case ctx.Err() != nil:
		return fmt.Errorf("clock: load the shim: %w", context.Cause(ctx))
	case errors.Is(err, os.ErrNotExist):
		return nil // without a shell the check is impossible
	case err != nil:
		return fmt.Errorf("clock: load the shim %s: %w: %s", file, err, line)
	case line != "":
		return fmt.Errorf("clock: load the shim %s: %s", file, line)
	}
	return nil
}

// Library calls [Build] with the cache directory and, as the second choice, the caller's own
// directory.
func Library(ctx context.Context, compiler, own string) (string, error) {
	dirs := []string{own}
	if cache, err := CacheDir(); err == nil {
		dirs = []string{cache, own}
	}
	return Build(ctx, compiler, dirs...)
}

// CacheDir returns the directory that keeps the library for later processes: lockfault in the
// user's cache directory.
func CacheDir() (string, error) {
	dir, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("clock: %w", err)
	}
	return filepath.Join(dir, "lockfault"), nil
}

// libraryName returns the file name of a library with that digest. The name also contains a hash of
// the architecture, the compiler flags and the source.
func libraryName(digest string) string {
	sum := sha256.Sum256([]byte(runtime.GOARCH + "\n" + flags + "\n" + string(source)))
	return "clock-" + hex.EncodeToString(sum[:8]) + "-" + digest + ".so"
}

// digest returns a hash of a library's content.
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
	cmd.Env = append(os.Environ(), "TMPDIR="+filepath.Dir(object)) // for the compiler's temporary files
	out, err := output(ctx, cmd)
	if ctx.Err() != nil {
		return fmt.Errorf("clock: compile the shim: %w", context.Cause(ctx))
	}
	if err != nil {
		line, _, _ := strings.Cut(strings.TrimSpace(string(out)), "\n")
		return fmt.Errorf("clock: %s can't compile the shim (%w): %s", words[0], err, line)
	}
	// A broken compiler's output must not enter the cache.
	if text, err := os.ReadFile(object); err != nil || !bytes.HasPrefix(text, []byte("\x7fELF")) {
		return fmt.Errorf("clock: %s can't compile the shim: what it made is no library", words[0])
	}
	return nil
}

// output runs a command and returns what it prints, stdout and stderr together. The command's
// processes end if this process ends or ctx is done.
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

// Env returns the environment variables that load the library and the clock into a process. The
// paths must be valid where that process runs, such as in a container.
func Env(library, file string) []string {
	return []string{"LD_PRELOAD=" + library, "LOCKFAULT_CLOCK=" + file}
}
