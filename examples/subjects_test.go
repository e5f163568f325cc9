package examples

import (
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/lockfault/lockfault/reports"
	"github.com/lockfault/lockfault/scenarios"
	"github.com/lockfault/lockfault/strategies"
)

// adapters are the programs in examples/subjects, and what each needs: one of these
// interpreters, with which the line can be run.
func adapters() []adapter {
	python := []string{"python3", "/usr/bin/python3"} // where there are several, a package manager's is the last
	return []adapter{
		{"redis-py", python, []string{"-c", "import redis"}, "redis_py.py", strategies.TagExtending, "python3-redis"},
		{"redis-py-no-timeout", python, []string{"-c", "import redis"}, "redis_py.py no-timeout", "", "python3-redis"},
		{"symfony-lock", []string{"php"}, []string{"-r", "require 'Symfony/Component/Lock/autoload.php'; new Redis();"}, "symfony_lock.php", strategies.TagExtending, "php-cli, php-redis, php-symfony-lock"},
		{"set-nx-rb", []string{"ruby"}, []string{"-e", "require 'redis'"}, "set_nx.rb", strategies.TagExtending, "ruby-redis"},
	}
}

type adapter struct {
	name         string
	interpreters []string
	probe        []string
	words        string
	tags         string
	packages     string
}

// command returns the command of the adapter. The test is skipped if nothing here runs it.
func (a adapter) command(t *testing.T) string {
	t.Helper()
	for _, interpreter := range a.interpreters {
		if exec.Command(interpreter, a.probe...).Run() == nil {
			return interpreter + " subjects/" + a.words
		}
	}
	t.Skipf("%s needs %s, which .ci/subjects installs", a.name, a.packages)
	return ""
}

// The libraries show under these scenarios what their files say, no more and no less.
func TestSubjects(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("programs are clients on Linux only")
	}
	for _, a := range adapters() {
		t.Run(a.name, func(t *testing.T) {
			command := a.command(t)
			file := "subjects/" + a.name + ".expect"
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			expected, err := scenarios.ParseExpectations(file, text)
			if err != nil {
				t.Fatal(err)
			}
			names := expected.Scenarios(a.name)
			if len(names) < 5 {
				t.Fatalf("%s speaks of %q only", file, names)
			}
			cells, _ := playAgain(t, build(t, "../cmd/lockfault"), "--subject", command, "--subject-name", a.name, "--subject-tags", a.tags,
				"--world", "process", "--jobs", "3", "--expect", file, "--scenario", strings.Join(names, ","))
			last := map[string]reports.Cell{} // of those that were late and played again
			for _, c := range cells {
				last[c.Scenario] = c
			}
			if len(last) != len(names) {
				t.Errorf("%d cells, want %d", len(last), len(names))
			}
			for _, c := range last {
				may, _ := expected.Of(a.name, c.Scenario)
				if !c.Decided() || !slices.Equal(c.Anomalies, may) {
					t.Errorf("%s under %s: %s %q, want %q; %s", a.name, c.Scenario, c.Verdict, c.Anomalies, may, c.Reason)
				}
			}
		})
	}
}

// The adapters do all that the protocol asks for.
func TestSubjectsCheck(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("programs are clients on Linux only")
	}
	for _, a := range adapters() {
		t.Run(a.name, func(t *testing.T) {
			cmd := exec.Command(build(t, "../cmd/lockfault"), "subject-check", a.command(t), "--subject-tags", a.tags)
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Errorf("%v\n%s", err, out)
			}
		})
	}
}
