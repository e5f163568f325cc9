package examples

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// The two locks of the documentation are those of the module: the page shows its files,
// the subtle one first.
func TestGoTestIsThePage(t *testing.T) {
	page, err := os.ReadFile("../docs/locktest.md")
	if err != nil {
		t.Fatal(err)
	}
	shown := map[string][]string{} // by the file's name
	for _, b := range blocks(strings.Split(string(page), "\n")) {
		if b.info == written {
			shown[b.file] = append(shown[b.file], strings.Join(b.text, "\n")+"\n")
		}
	}
	for _, lock := range []string{"subtle", "sound"} {
		files, err := filepath.Glob(filepath.Join("gotest", lock, "*.go"))
		if err != nil || len(files) != 5 {
			t.Fatal(files, err)
		}
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			list := shown[filepath.Base(file)]
			if lock == "sound" && len(list) > 1 {
				list = list[1:]
			}
			if len(list) == 0 || list[0] != string(text) {
				t.Errorf("docs/locktest.md doesn't show %s as it is", file)
			}
		}
	}
}

// A user's module finds the subtle defect, and nothing in the sound lock.
func TestGoTest(t *testing.T) {
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS("gotest")); err != nil {
		t.Fatal(err)
	}
	repository, err := filepath.Abs("..")
	if err != nil {
		t.Fatal(err)
	}
	env := append(os.Environ(), "GOWORK=off")
	if hasServers(t) {
		env = append(env, "LOCKFAULT_REAL=process", "LOCKFAULT_PROGRAM="+build(t, "../cmd/lockfault"))
	}
	goes := func(args ...string) (string, error) {
		cmd := exec.CommandContext(t.Context(), "go", args...)
		cmd.Dir, cmd.Env = dir, env
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	if out, err := goes("mod", "edit", "-replace", "github.com/lockfault/lockfault="+repository); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if out, err := goes("test", "./sound"); err != nil {
		t.Errorf("the sound lock fails: %v\n%s", err, out)
	}
	out, err := goes("test", "-v", "./subtle") // or go test doesn't tell what was skipped, and why
	if err == nil {
		t.Error("the subtle lock passes")
	}
	for _, want := range []string{
		"--- FAIL: TestMutex/pause-in-release", "bug: foreign-release", "--- FAIL: TestMutex/release-reply-lost", "--- FAIL: TestMutex/partition-after-release",
		"--- FAIL: TestSearch", "foreign-release.txt keeps it",
	} {
		if !strings.Contains(out, want) {
			t.Errorf("the subtle lock's tests don't say %q:\n%s", want, out)
		}
	}
	real := strings.Count(out, "--- FAIL: TestReal")
	if n := strings.Count(out, "--- FAIL: ") - real; n != 6 {
		t.Errorf("%d tests of the subtle lock fail in virtual time, not 6:\n%s", n, out)
	}
	// On servers it fails as well, unless the machine was too slow for it.
	if hasServers(t) && real != 2 && !strings.Contains(out, "--- SKIP: TestReal/pause-in-release") {
		t.Errorf("%d tests of the subtle lock fail on real servers, not 2:\n%s", real, out)
	}
}

// Whoever imports locktest links and downloads little.
func TestGoTestIsLight(t *testing.T) {
	cmd := exec.CommandContext(t.Context(), "go", "list", "-deps", "-test", "-f", "{{with .Module}}{{.Path}}{{end}}", "./sound")
	cmd.Dir = "gotest"
	cmd.Env = append(os.Environ(), "GOWORK=off")
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	modules := strings.Fields(string(out))
	slices.Sort(modules)
	if modules = slices.Compact(modules); len(modules) > 8 {
		t.Errorf("a test with locktest links %d modules, more than 8: %v", len(modules), modules)
	}
	sums, err := os.ReadFile("gotest/go.sum")
	if err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(string(sums), "\n"); n > 30 {
		t.Errorf("its go.sum has %d lines, more than 30", n)
	}
}
