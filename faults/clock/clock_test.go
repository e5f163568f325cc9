//go:build linux

package clock_test

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/lockfault/lockfault/faults/clock"
)

// build returns the library. Without a compiler it skips the test, except where skipping is not
// allowed.
func build(t *testing.T, dir string) string {
	t.Helper()
	library, err := clock.Build(t.Context(), "", dir)
	if errors.Is(err, exec.ErrNotFound) && os.Getenv("CI") == "" {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	return library
}

func create(t *testing.T) *clock.File {
	t.Helper()
	f, err := clock.Create(filepath.Join(t.TempDir(), "a clock"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return f
}

// watch compiles and runs the program that reads clocks, calls set repeatedly until the program
// ends, and returns its output.
func watch(t *testing.T, set func(f *clock.File, i int) error, args ...string) string {
	t.Helper()
	dir := t.TempDir()
	library, program := build(t, dir), filepath.Join(dir, "clocks")
	if out, err := exec.Command("cc", "-O2", "-o", program, filepath.Join("testdata", "clocks.c")).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	f := create(t)
	cmd := exec.Command(program, args...)
	cmd.Env = append(os.Environ(), clock.Env(library, f.Path())...)
	var out []byte
	var err error
	done := make(chan struct{})
	go func() {
		defer close(done)
		out, err = cmd.CombinedOutput()
	}()
	for i := 0; ; i++ {
		select {
		case <-done:
			if err != nil {
				t.Errorf("%v: %s", err, out)
			}
			if !f.Loaded() {
				t.Error("the process had the clock, and the file says no")
			}
			return strings.TrimSpace(string(out))
		default:
			if err := set(f, i); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// TestJumpsAreSeenWhole checks that a process never reads a partly written setting.
func TestJumpsAreSeenWhole(t *testing.T) {
	offsets := []time.Duration{time.Hour, -2 * time.Hour, 0}
	said := watch(t, func(f *clock.File, i int) error { return f.Set(offsets[i%3], 1) }, "100000", "0", "3600", "-7200")
	if said != "saw 3 offsets" {
		t.Error(said)
	}
}

// TestSpansNeverGoBack checks that clocks that measure spans continue from their present value when
// rates change.
func TestSpansNeverGoBack(t *testing.T) {
	rates := []float64{1000, 0.001, 1, 10, 0.5}
	watch(t, func(f *clock.File, i int) error { return f.Set(time.Duration(i), rates[i%5]) }, "100000")
}

func TestBuildOnce(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "deep", "cache")
	build(t, filepath.Join(t.TempDir(), "elsewhere")) // skips the test without a compiler
	var all sync.WaitGroup
	files := make([]string, 8)
	for i := range files {
		all.Go(func() {
			var err error
			if files[i], err = clock.Build(t.Context(), "", dir); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	for _, file := range files {
		if file != files[0] {
			t.Errorf("built %s and %s", files[0], file)
		}
	}
	left, err := os.ReadDir(dir)
	if err != nil || len(left) != 1 || filepath.Join(dir, left[0].Name()) != files[0] {
		t.Errorf("in the directory: %v, %v", left, err)
	}
	if file, err := clock.Build(t.Context(), "no-such-compiler", dir); err != nil || file != files[0] {
		t.Errorf("what is built was not taken: %q, %v", file, err)
	}
}

// TestDamagedLibraryIsRebuilt checks that a damaged library in the cache is rebuilt, and that a
// library that does not load is not kept.
func TestDamagedLibraryIsRebuilt(t *testing.T) {
	dir := t.TempDir()
	file := build(t, dir)
	sound, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for name, damaged := range map[string][]byte{
		"empty":     nil,
		"no ELF":    []byte("nonsense"),
		"truncated": sound[:len(sound)/2],
		"one byte":  append(append([]byte{}, sound[:len(sound)-1]...), sound[len(sound)-1]+1),
	} {
		t.Run(name, func(t *testing.T) {
			if err := os.WriteFile(file, damaged, 0o700); err != nil {
				t.Fatal(err)
			}
			if _, err := clock.Build(t.Context(), "no-such-compiler", dir); err == nil || !strings.Contains(err.Error(), "no C compiler") {
				t.Errorf("without a compiler: %v", err)
			}
			again := build(t, dir)
			if text, err := os.ReadFile(again); err != nil || !bytes.Equal(text, sound) {
				t.Errorf("the library is not sound: %v", err)
			}
		})
	}
}

// TestLibraryMustLoad checks that Build fails with the loader's reason, and leaves no file, if the
// compiled library does not load.
func TestLibraryMustLoad(t *testing.T) {
	build(t, t.TempDir()) // skips the test without a compiler
	dir, bin := t.TempDir(), t.TempDir()
	program := filepath.Join(bin, "cc")
	const text = `#!/bin/sh
while [ "$1" != -o ]; do shift; done
printf '\177ELF and no more' >"$2"
`
	if err := os.WriteFile(program, []byte(text), 0o700); err != nil {
		t.Fatal(err)
	}
	if _, err := clock.Build(t.Context(), program, dir); err == nil || !strings.Contains(err.Error(), "load the shim") || strings.Contains(err.Error(), "\n") {
		t.Errorf("error %v", err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("left: %v, %v", left, err)
	}
}

// TestSharedDirectoryIsNotUsed checks that a directory that other users can write to is neither
// read nor written.
func TestSharedDirectoryIsNotUsed(t *testing.T) {
	shared, own := filepath.Join(t.TempDir(), "shared"), t.TempDir()
	file := build(t, shared)
	if err := os.Chmod(shared, 0o777); err != nil {
		t.Fatal(err)
	}
	if got, err := clock.Build(t.Context(), "", shared, own); err != nil || filepath.Dir(got) != own {
		t.Errorf("built %s, %v, and %s is there", got, err, file)
	}
	if _, err := clock.Build(t.Context(), "", shared); err == nil || !strings.Contains(err.Error(), "other users can write to") {
		t.Errorf("error %v", err)
	}
}

func TestBuildFails(t *testing.T) {
	dir := t.TempDir()
	for _, c := range []struct{ compiler, want string }{
		{"no-such-compiler -m64", "no C compiler"},
		{"false", "can't compile"},
		{"true", "no library"},
	} {
		if _, err := clock.Build(t.Context(), c.compiler, dir); err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("with %q: %v", c.compiler, err)
		}
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("left: %v, %v", left, err)
	}
	if _, err := clock.Build(t.Context(), ""); err == nil {
		t.Error("built nowhere")
	}
}

func TestFileRefuses(t *testing.T) {
	f := create(t)
	for _, rate := range []float64{0, -1, clock.MaxRate + 1} {
		if f.Set(0, rate) == nil {
			t.Errorf("a rate of %v was taken", rate)
		}
	}
	if f.Loaded() {
		t.Error("loaded by nobody")
	}
	for range 2 {
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	}
	if f.Set(0, 1) == nil {
		t.Error("set after Close")
	}
	if _, err := clock.Create(filepath.Join(t.TempDir(), "no", "such", "directory")); err == nil {
		t.Error("created nowhere")
	}
}
