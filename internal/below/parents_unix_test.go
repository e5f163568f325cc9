//go:build unix

package below_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/lockfault/lockfault/internal/below"
)

func TestCheckParents(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can give directories to other users")
	}
	const other = 12345
	top := t.TempDir()
	mkdir := func(name string, owner int, mode os.FileMode) {
		t.Helper()
		path := filepath.Join(top, name)
		if err := os.Mkdir(path, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.Chown(path, owner, owner); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
	}
	link := func(name, to string, owner int) {
		t.Helper()
		path := filepath.Join(top, name)
		if err := os.Symlink(to, path); err != nil {
			t.Fatal(err)
		}
		if err := os.Lchown(path, owner, owner); err != nil {
			t.Fatal(err)
		}
	}
	mkdir("mine", 0, 0o755)
	mkdir("mine/below", 0, 0o700)
	mkdir("theirs", other, 0o755)
	mkdir("theirs/mine", 0, 0o755)
	mkdir("open", 0, 0o777)
	mkdir("sticky", 0, 0o777|os.ModeSticky)
	mkdir("group", 0, 0o775)
	mkdir("sticky/theirs", other, 0o755)
	if err := os.Chown(filepath.Join(top, "group"), 0, other); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(filepath.Join(top, "group"), 0o775); err != nil {
		t.Fatal(err)
	}
	link("mylink", "mine/below", 0)
	link("theirlink", "mine/below", other)
	link("totheirs", filepath.Join(top, "theirs"), 0)
	link("mine/up", "../theirs/mine", 0)
	link("loop", "loop", 0)
	for path, want := range map[string]string{
		"mine/x":          "",
		"mine/below/x":    "",
		"mine/new/a/b":    "",
		"mylink/x":        "",
		"sticky/x":        "",
		"theirs":          "",
		"open":            "",
		"theirs/x":        "belongs to another user",
		"theirs/mine/x":   "belongs to another user",
		"theirlink/x":     "belongs to another user",
		"theirlink":       "belongs to another user",
		"totheirs/x":      "belongs to another user",
		"totheirs/mine/x": "belongs to another user",
		"mine/up/x":       "belongs to another user",
		"sticky/theirs/x": "belongs to another user",
		"open/x":          "other users may change",
		"group/x":         "other users may change",
		"loop/x":          "too many levels",
	} {
		err := below.CheckParents(filepath.Join(top, path))
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", path, err, want)
		}
	}
}
