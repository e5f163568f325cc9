package atomicdir

import (
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/lockfault/lockfault/internal/below"
)

var names = []string{"a", "b", "dir", "logs"}

// tree writes files, by their names below the directory.
func tree(t *testing.T, dir string, files map[string]string) {
	t.Helper()
	for name, text := range files {
		file := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// seen is what somebody reads who opens files below the directory by their names.
func seen(t *testing.T, dir string, candidates ...map[string]string) map[string]string {
	t.Helper()
	found := map[string]string{}
	for _, files := range candidates {
		for name := range files {
			text, err := os.ReadFile(filepath.Join(dir, name))
			if err == nil {
				found[name] = string(text)
			}
		}
	}
	return found
}

// The cases are what was there before, and what replaces it.
var cases = map[string]struct{ old, fresh map[string]string }{
	"nothing before":         {nil, map[string]string{"a": "new", "dir/x": "new"}},
	"all":                    {map[string]string{"a": "old", "b": "old", "dir/x": "old", "dir/y": "old"}, map[string]string{"a": "new", "b": "new", "dir/x": "new", "dir/z": "new"}},
	"one goes":               {map[string]string{"a": "old", "dir/x": "old", "logs/l": "old"}, map[string]string{"a": "new", "dir/x": "new"}},
	"one comes":              {map[string]string{"a": "old", "dir/x": "old"}, map[string]string{"a": "new", "dir/x": "new", "logs/l": "new"}},
	"a file for a directory": {map[string]string{"a": "old", "dir/x": "old"}, map[string]string{"a": "new", "dir": "new"}},
	"nothing after":          {map[string]string{"a": "old", "dir/x": "old"}, nil},
}

// open opens a directory for the rest of a test.
func open(t *testing.T, path string) *below.Dir {
	t.Helper()
	d, err := below.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { d.Close() })
	return d
}

func place(t *testing.T, old, fresh map[string]string) Place {
	t.Helper()
	p := Place{Dir: open(t, t.TempDir()), Work: ".work", Names: names}
	tree(t, p.Dir.Path(), old)
	tree(t, p.Dir.Path(), map[string]string{"mine": "stays"})
	tree(t, p.Dir.Join(p.Fresh()), fresh)
	if err := os.MkdirAll(p.Dir.Join(p.Fresh()), 0o755); err != nil {
		t.Fatal(err)
	}
	return p
}

// errDied ends a Commit as if its process had been killed.
type errDied struct{}

// dieAt lets Commit get as far as that step, and reports whether it died there.
func dieAt(p Place, step int) (died bool, err error) {
	defer func() {
		if v := recover(); v != nil {
			if _, ok := v.(errDied); !ok {
				panic(v)
			}
			died = true
		}
	}()
	p.step = func() {
		if step--; step < 0 {
			panic(errDied{})
		}
	}
	return false, p.Commit()
}

// Whenever the process dies, everybody sees all the old entries or all the new
// ones; and what Settle makes of it are plain entries, the same as before.
func TestCommitDies(t *testing.T) {
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			if runtime.GOOS == "linux" {
				commitDies(t, c.old, c.fresh, false)
			}
			t.Run("without exchange", func(t *testing.T) { commitDies(t, c.old, c.fresh, true) })
		})
	}
}

// commitDies lets a Commit die at each of its steps. A clumsy one may show
// less than all until it is settled.
func commitDies(t *testing.T, old, fresh map[string]string, clumsy bool) {
	for step := 0; ; step++ {
		p := place(t, old, fresh)
		p.clumsy = clumsy
		died, err := dieAt(p, step)
		if err != nil {
			t.Fatal(err)
		}
		got := seen(t, p.Dir.Path(), old, fresh)
		if clumsy {
			if err := p.Settle(); err != nil {
				t.Errorf("at step %d: settle: %v", step, err)
			}
			got = seen(t, p.Dir.Path(), old, fresh)
		}
		isNew := maps.Equal(got, fresh)
		if !isNew && !maps.Equal(got, old) {
			t.Errorf("at step %d there is %v", step, got)
		}
		if !died && !isNew {
			t.Errorf("after Commit there is %v", got)
		}
		// Who dies while settling can be settled again.
		for again := range 3 {
			if again < 2 {
				settle(p, again)
			} else if err := p.Settle(); err != nil {
				t.Errorf("at step %d: settle: %v", step, err)
			}
			if after := seen(t, p.Dir.Path(), old, fresh); !maps.Equal(after, got) {
				t.Errorf("at step %d there was %v and Settle makes it %v", step, got, after)
			}
		}
		plain(t, p, step)
		if former := seen(t, p.Dir.Join(p.Former()), old); !died && !maps.Equal(former, old) {
			t.Errorf("the old entries are %v", former)
		}
		if text, _ := os.ReadFile(p.Dir.Join("mine")); string(text) != "stays" {
			t.Error("it has touched what isn't named")
		}
		if left := seen(t, p.Dir.Join(p.Fresh()), fresh); !isNew && !maps.Equal(left, fresh) {
			t.Errorf("at step %d the new entries are %v", step, left)
		}
		if !died {
			if step < 5 {
				t.Errorf("there were %d steps", step)
			}
			return
		}
	}
}

// settle settles up to that step.
func settle(p Place, step int) {
	defer func() { recover() }()
	p.step = func() {
		if step--; step < 0 {
			panic(errDied{})
		}
	}
	p.Settle()
}

// plain checks that no entry is a link.
func plain(t *testing.T, p Place, step int) {
	t.Helper()
	for _, name := range names {
		if info, err := os.Lstat(p.Dir.Join(name)); err == nil && info.Mode()&fs.ModeSymlink != 0 {
			t.Errorf("after step %d %s is a link", step, name)
		}
	}
	if leads, err := p.Dir.Readlink(p.work(now)); err == nil {
		t.Errorf("after step %d things are still replaced by %s", step, leads)
	}
}

// One after the other comes out the same.
func TestCommitPlainly(t *testing.T) {
	for name, c := range cases {
		p := place(t, c.old, c.fresh)
		if err := p.Dir.Mkdir(p.Former(), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := p.commitPlainly(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if got := seen(t, p.Dir.Path(), c.old, c.fresh); !maps.Equal(got, c.fresh) {
			t.Errorf("%s: there is %v", name, got)
		}
		if old := seen(t, p.Dir.Join(p.Former()), c.old); !maps.Equal(old, c.old) {
			t.Errorf("%s: the old entries are %v", name, old)
		}
	}
}

func TestCommitSaysWhatIsWrong(t *testing.T) {
	p := place(t, nil, nil)
	if err := p.Dir.Mkdir(p.Former(), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := p.Commit(); err == nil || !strings.Contains(fmt.Sprint(err), former) {
		t.Errorf("former entries are in the way: %v", err)
	}
}
