package cli_test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/lockfault/lockfault/cli"
	"github.com/lockfault/lockfault/strategies"
	"github.com/lockfault/lockfault/strategies/all"
)

// registry is that of a user who brought strategies of their own.
func registry() strategies.Registry {
	r, err := all.Registry().With(misbehaving()...)
	if err != nil {
		panic(err)
	}
	return r
}

// The test binary doubles as the program, and so as its workers.
func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){
		"lockfault": func() { os.Exit(cli.Main(registry())) },
	})
}

func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata/script",
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"exits": exits,
		},
		Setup: func(env *testscript.Env) error {
			// Under the race detector a process takes a second to end.
			env.Setenv("GORACE", "atexit_sleep_ms=0")
			env.Setenv("XDG_CACHE_HOME", filepath.Join(env.WorkDir, "cache")) // what is compiled once is so in each script
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

// exits runs a command and checks its exit status: exits 2 lockfault rnu.
func exits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits STATUS COMMAND [ARG...]")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	got := 0
	if err := ts.Exec(args[1], args[2:]...); err != nil {
		var exit *exec.ExitError
		if !errors.As(err, &exit) {
			ts.Fatalf("%v", err)
		}
		got = exit.ExitCode()
	}
	if got != want {
		ts.Fatalf("exit status %d, want %d", got, want)
	}
}
