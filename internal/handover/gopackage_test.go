package handover

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// files writes files of a module into a new working directory.
func files(t *testing.T, texts map[string]string) {
	t.Helper()
	t.Chdir(t.TempDir())
	for name, text := range texts {
		if err := os.MkdirAll(filepath.Dir(name), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("GOWORK", "off")
	t.Setenv("GOFLAGS", "")
	t.Setenv("GOPROXY", "off")
}

const mod = "module example.com/m\n\ngo 1.26\n"

// imports begins a file of a package that has locks.
const imports = "package locks\n\nimport \"github.com/lockfault/lockfault/strategies\"\n\n"

// TestMaker checks what makes the lock of a package.
func TestMaker(t *testing.T) {
	const function = "func New(env strategies.Env) (*Lock, error) { return nil, nil }\n"
	for _, c := range []struct {
		name, text, target string
		want               maker
	}{
		{"a function", imports + function + "func Other(a int) (int, error) { return 0, nil }\n", "./locks", maker{member: "New", from: "example.com/m/locks.New"}},
		{"through locktest", strings.ReplaceAll(imports+function, "strategies", "locktest"), "./locks", maker{member: "New", from: "example.com/m/locks.New"}},
		{"under another name", "package locks\n\nimport s \"github.com/lockfault/lockfault/strategies\"\n\n" + strings.ReplaceAll(function, "strategies", "s"), "example.com/m/locks", maker{member: "New", from: "example.com/m/locks.New"}},
		{"one of two", imports + function + strings.Replace(function, "New", "NewOther", 1), "./locks.NewOther", maker{member: "NewOther", from: "example.com/m/locks.NewOther"}},
		{"a strategy", imports + "var Mine = strategies.Strategy{Name: \"my-lock\"}\n", "./locks", maker{member: "Mine", value: true, name: "my-lock", from: "example.com/m/locks.Mine"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			files(t, map[string]string{"go.mod": mod, "locks/locks.go": c.text})
			p, name, err := find(t.Context(), t.TempDir(), c.target)
			if err != nil {
				t.Fatal(err)
			}
			if got, err := p.maker(name); err != nil || got != c.want {
				t.Errorf("%+v, %v; want %+v", got, err, c.want)
			}
		})
	}
}

// TestBuildLockFails checks what is said of packages without one lock.
func TestBuildLockFails(t *testing.T) {
	for _, c := range []struct {
		name, text, target, want string
	}{
		{"no lock", "package locks\n", "./locks", `example.com/m/locks has nothing that makes a lock: add "func New(env strategies.Env) (strategies.Lock, error)"`},
		{"an Env of something else", "package locks\n\nimport \"example.com/m/strategies\"\n\nfunc New(env strategies.Env) (any, error) { return nil, nil }\n", "./locks", "has nothing that makes a lock"},
		{"a method", imports + "func (l *Lock) New(env strategies.Env) (*Lock, error) { return nil, nil }\n", "./locks", "has nothing that makes a lock"},
		{"several", imports + "func A(strategies.Env) (any, error)\nfunc B(strategies.Env) (any, error)\n", "./locks", "makes several locks: name one, as in example.com/m/locks.A (A, B)"},
		{"another function", imports + "func A(strategies.Env) (any, error)\nfunc B()\n", "./locks.B", "example.com/m/locks.B does not make a lock; what does: A"},
		{"a name that is computed", imports + "var A = strategies.Strategy{Name: name}\n", "./locks", `the name of example.com/m/locks.A is not a literal`},
		{"a program", "package main\n", "./locks", `./locks is a program, which cannot be imported`},
		{"no such directory", "package locks\n", "./lock", "the Go package ./lock: "},
		{"several packages", "package locks\n", "./...", "./... names several Go packages: name one"},
		{"not parsed", imports + "func A(\n", "./locks", "locks.go:"},
	} {
		t.Run(c.name, func(t *testing.T) {
			files(t, map[string]string{"go.mod": mod, "locks/locks.go": c.text, "other/other.go": "package other\n"})
			_, err := BuildLock(t.Context(), c.target, func(string) bool { return false }, io.Discard)
			if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\n") {
				t.Errorf("%v; want one line with %q", err, c.want)
			}
		})
	}
	t.Run("no module", func(t *testing.T) {
		files(t, map[string]string{"locks/locks.go": "package locks\n"})
		if _, err := BuildLock(t.Context(), "./locks", nil, io.Discard); err == nil || !strings.Contains(err.Error(), "./locks") {
			t.Errorf("%v", err)
		}
	})
}

// TestIsPackage tells packages from names of strategies.
func TestIsPackage(t *testing.T) {
	for arg, want := range map[string]bool{"./locks": true, "example.com/m": true, ".": true, `.\locks`: true, "my-lock": false, "set-*": false, "redsync-5": false} {
		if IsPackage(arg) != want {
			t.Errorf("%s: %t", arg, !want)
		}
	}
}

// TestStrategyName checks that names of packages become names of strategies.
func TestStrategyName(t *testing.T) {
	for name, want := range map[string]string{"mylock": "mylock", "My_Lock2": "my-lock2", "_": "lock"} {
		if got := strategyName(name); got != want {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
}
