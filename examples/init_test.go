package examples

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// What init writes compiles, and passes, in a module of a user's own; and the test that it writes can fail.
func TestInit(t *testing.T) {
	repository, err := filepath.Abs("..")
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(t.TempDir(), "mutex")
	if out, err := exec.CommandContext(t.Context(), build(t, "../cmd/lockfault"), "init", dir).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	goes := func(args ...string) (string, error) {
		cmd := exec.CommandContext(t.Context(), "go", args...)
		cmd.Dir, cmd.Env = dir, append(os.Environ(), "GOWORK=off")
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	// The module is that of the other example, so that no version needs to be looked up.
	for _, name := range []string{"go.mod", "go.sum"} {
		text, err := os.ReadFile(filepath.Join("gotest", name))
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, name), text, 0o666)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if out, err := goes("mod", "edit", "-module", "example.com/mutex", "-replace", "github.com/lockfault/lockfault="+repository); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	out, err := goes("test", "-v", ".")
	if err != nil {
		t.Errorf("%v\n%s", err, out)
	}
	for _, want := range []string{"--- PASS: TestScenarios/first.txt", "--- PASS: TestScenarios/holder-crash", "--- PASS: TestSearch"} {
		if !strings.Contains(out, want) {
			t.Errorf("it doesn't say %q:\n%s", want, out)
		}
	}
	if out, err := goes("vet", "."); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
	file := filepath.Join(dir, "lock.go")
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	broken := strings.Replace(string(text), `redis.call("GET", KEYS[1]) == ARGV[1]`, `redis.call("GET", KEYS[1])`, 1)
	if err := os.WriteFile(file, []byte(broken), 0o666); err != nil {
		t.Fatal(err)
	}
	if out, err := goes("test", "."); err == nil || !strings.Contains(out, "foreign-release") {
		t.Errorf("a lock that deletes anybody's key: %v\n%s", err, out)
	}
}
