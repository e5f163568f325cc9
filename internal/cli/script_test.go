package cli_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/lockfault/lockfault/internal/cli"
	"github.com/lockfault/lockfault/internal/cli/tui"
	"github.com/lockfault/lockfault/internal/containers"
	"github.com/lockfault/lockfault/internal/ports"
	"github.com/lockfault/lockfault/internal/queue/natsserver"
	"github.com/lockfault/lockfault/internal/racetest"
	"github.com/lockfault/lockfault/internal/schematest"
	"github.com/lockfault/lockfault/internal/services"
	"github.com/lockfault/lockfault/strategies"
	"github.com/lockfault/lockfault/strategies/all"
)

// registry is that of a user who brought strategies of their own.
func registry() strategies.Registry {
	r, err := all.Registry().With(append(misbehaving(), users()...)...)
	if err == nil { // built in, so that no probe is held before the cells are
		r, err = r.WithBuiltin(held(), heldLater())
	}
	if err != nil {
		panic(err)
	}
	return r
}

// ours is the registry of a user who has nearly nothing but strategies of their own.
func ours() strategies.Registry {
	builtin, _ := all.Registry().Lookup("fenced")
	mine, _ := all.Registry().Lookup("set-nx-px-lua")
	mine.Name, mine.Tags = "our-lock", []string{strategies.TagSingle, "ours"}
	r, err := strategies.Registry{}.With(builtin, mine)
	if err != nil {
		panic(err)
	}
	return r
}

// The test binary doubles as the programs, and so as their workers.
func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){
		"lockfault": func() {
			os.Exit(cli.Main(registry(), cli.WithPlay(tui.Show), cli.WithContainers(containers.Docker{}), cli.WithQueue(natsserver.Engine{}), cli.WithServices(services.All()...)))
		},
		"ours": func() { os.Exit(cli.Main(ours(), cli.WithPlay(tui.Show))) },
		"theirs": func() {
			os.Exit(cli.Main(ours(), cli.WithPlay(tui.Show), cli.WithQueue(natsserver.Engine{}), cli.WithServices(services.All()...)))
		},
	})
}

// everybody is a script that names all strategies and tags that come with
// lockfault.
func everybody() []byte {
	var b bytes.Buffer
	b.WriteString("clients A\n\nA acquire\n\nexpect none\n")
	for _, s := range all.Registry().All() {
		fmt.Fprintf(&b, "expect %s @%s: none\n", s.Name, strings.Join(s.Tags, " @"))
	}
	return b.Bytes()
}

// What plays cells in several goroutines and processes, once of each kind.
func TestScripts(t *testing.T) { play(t, "testdata/script") }

// What make test plays without the race detector: what parses, prints and refuses, in which
// nothing is concurrent that TestScripts hasn't; searches, which it sees in package explore; and
// many cells on real servers, for which it makes the machine too slow.
func TestPlainScripts(t *testing.T) {
	racetest.Skip(t)
	play(t, "testdata/plain")
}

// TestSlowScripts is TestPlainScripts for scripts that take ten seconds or longer.
func TestSlowScripts(t *testing.T) {
	racetest.Skip(t)
	play(t, "testdata/slow")
}

// TestServiceScripts is TestPlainScripts for locks of other services, whose servers must be installed.
func TestServiceScripts(t *testing.T) {
	racetest.Skip(t)
	play(t, "testdata/services")
}

// play plays the scripts in a directory.
func play(t *testing.T, dir string) {
	t.Parallel()
	testscript.Run(t, testscript.Params{
		Dir:                 dir,
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"appears": appears,
			"exits":   exits,
			"timely":  timely,
			"schema":  schema,
		},
		Condition: condition,
		Setup: func(env *testscript.Env) error {
			// Under the race detector a process takes a second to end.
			env.Setenv("GORACE", "atexit_sleep_ms=0")
			if err := os.WriteFile(filepath.Join(env.WorkDir, "everybody.txt"), everybody(), 0o644); err != nil {
				return err
			}
			env.Setenv("XDG_CACHE_HOME", filepath.Join(env.WorkDir, "cache")) // what is compiled once is so in each script
			port, err := ports.New().Take()
			if err != nil {
				return err
			}
			env.Setenv("QUEUE", fmt.Sprintf("127.0.0.1:%d", port))
			// Where lockfault is, and the server program, for scripts that
			// want nothing else on PATH.
			env.Setenv("BIN", filepath.SplitList(env.Getenv("PATH"))[0])
			if server, err := exec.LookPath("redis-server"); err == nil {
				env.Setenv("REDIS_SERVER", server)
			}
			return nil
		},
	})
}

// condition is "zookeeper" or "postgres", where there is one. Where CI is set there must be.
func condition(name string) (bool, error) {
	for _, service := range services.All() {
		if service.Name() == name {
			return os.Getenv("CI") != "" || service.Check(context.Background()) == nil, nil
		}
	}
	return false, fmt.Errorf("unknown condition %q", name)
}

// appears waits until a file is there: appears FILE.
func appears(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: appears FILE")
	}
	for began := time.Now(); ; time.Sleep(10 * time.Millisecond) {
		if _, err := os.Stat(ts.MkAbs(args[0])); err == nil {
			return
		}
		if time.Since(began) > time.Minute {
			ts.Fatalf("%s does not appear", args[0])
		}
	}
}

// schema checks that a file is what the published schema of results.json says: schema FILE.
func schema(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: schema FILE")
	}
	ts.Check(schematest.Results([]byte(ts.ReadFile(args[0]))))
}

// exits runs a command and checks its exit status: exits 2 lockfault rnu.
func exits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits STATUS COMMAND [ARG...]")
	}
	if got := status(ts, args[1:]); strconv.Itoa(got) != args[0] {
		ts.Fatalf("exit status %d, want %s", got, args[0])
	}
}

// tooLate is what commands print of a cell for which the machine was too slow each time.
var tooLate = regexp.MustCompile(`the machine was \d`)

// timely is exits for a command that plays cells on real servers. What it prints when the machine was too slow
// for one is right, too, but not what such a script is about, so it is run once more.
func timely(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: timely STATUS COMMAND [ARG...]")
	}
	for attempts := 1; ; attempts++ {
		got := status(ts, args[1:])
		right, printed := strconv.Itoa(got) == args[0], ts.ReadFile("stdout")
		if late := tooLate.MatchString(printed) || !right && strings.Contains(printed, "the machine was "); late && attempts < 15 {
			continue
		}
		if !right {
			ts.Fatalf("exit status %d, want %s", got, args[0])
		}
		return
	}
}

// status runs a command and returns its exit status.
func status(ts *testscript.TestScript, command []string) int {
	err := ts.Exec(command[0], command[1:]...)
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return exit.ExitCode()
	}
	ts.Check(err)
	return 0
}
