// Package clock moves the clocks of other processes: a small library, which
// [Build] compiles out of embedded C, is loaded into them and answers for the
// system, as a [File] that they share with this process says.
//
// It works on Linux, on x86_64 and aarch64, with glibc and musl alike, and in
// containers on this machine's kernel. It imports nothing of this module.
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
)

//go:embed shim/clock.c
var source []byte

// flags make a library that needs no other.
const flags = "-shared -fPIC -O2 -nostdlib -ffreestanding -fno-stack-protector -fvisibility=hidden"

// Build returns the file of the library, which it compiles if no directory
// has it yet. It tries the directories in turn and makes those that are not
// there; the last error is returned if none can be written to. The compiler is a
// command with its arguments, cc if empty. Any number of processes may build at
// once. It blocks while the compiler runs, or until ctx is done.
func Build(ctx context.Context, compiler string, dirs ...string) (string, error) {
	if runtime.GOOS != "linux" {
		return "", fmt.Errorf("clock: the shim is for Linux, and this is %s", runtime.GOOS)
	}
	name := libraryName()
	for _, dir := range dirs {
		file := filepath.Join(dir, name)
		if info, err := os.Stat(file); err == nil && info.Mode().IsRegular() {
			return file, nil
		}
	}
	err := errors.New("clock: no directory to build in")
	for _, dir := range dirs {
		if err = os.MkdirAll(dir, 0o700); err != nil {
			err = fmt.Errorf("clock: %w", err)
			continue
		}
		var object *os.File
		if object, err = os.CreateTemp(dir, name+".*"); err != nil {
			err = fmt.Errorf("clock: %w", err)
			continue
		}
		object.Close()
		defer os.Remove(object.Name())
		if err := compile(ctx, compiler, object.Name()); err != nil {
			return "", err
		}
		// Whole or not at all; another one's is the same.
		file := filepath.Join(dir, name)
		if err = os.Rename(object.Name(), file); err != nil {
			err = fmt.Errorf("clock: %w", err)
			continue
		}
		return file, nil
	}
	return "", err
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

// libraryName is another one for whatever makes another library.
func libraryName() string {
	sum := sha256.Sum256([]byte(runtime.GOARCH + "\n" + flags + "\n" + string(source)))
	return "clock-" + hex.EncodeToString(sum[:8]) + ".so"
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
	cmd := exec.CommandContext(ctx, path, append(args, "-o", object, "-x", "c", "-")...)
	cmd.Stdin = bytes.NewReader(source)
	out, err := cmd.CombinedOutput()
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

// Env returns what a process must have in its environment: the library's file
// and the clock's, by the names that they have in its eyes.
func Env(library, file string) []string {
	return []string{"LD_PRELOAD=" + library, "LOCKFAULT_CLOCK=" + file}
}
