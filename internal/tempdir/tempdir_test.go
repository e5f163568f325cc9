//go:build unix

package tempdir_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/lockfault/lockfault/internal/tempdir"
)

// inDir is set in a process that makes directories there until it is killed.
const inDir = "LOCKFAULT_TEST_TEMPDIR"

// stays is set with it if the process makes one directory, with links to that place.
const stays = "LOCKFAULT_TEST_TEMPDIR_STAYS"

func TestMain(m *testing.M) {
	if parent := os.Getenv(inDir); parent != "" {
		err := error(nil)
		if elsewhere := os.Getenv(stays); elsewhere != "" {
			err = hold(parent, elsewhere)
		} else {
			err = toil(parent)
		}
		fmt.Println(err)
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// toil makes directories and removes them. The first one stays.
func toil(parent string) error {
	if _, err := tempdir.Make(parent, "test-"); err != nil {
		return err
	}
	for {
		dir, err := tempdir.Make(parent, "test-")
		if err != nil {
			return err
		}
		for i := range 100 {
			if err := os.WriteFile(filepath.Join(dir.Path(), fmt.Sprint(i)), nil, 0o600); err != nil {
				return err
			}
		}
		if err := dir.Remove(); err != nil {
			return err
		}
	}
}

func names(t *testing.T, dir string) (list []string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		list = append(list, e.Name())
	}
	return list
}

// Whenever a process is killed, in the midst of making or removing a directory
// too, the next one removes all that is left.
func TestKilledOwnersLeaveNothing(t *testing.T) {
	parent := t.TempDir()
	for i := range 30 {
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), inDir+"="+parent, "GORACE=atexit_sleep_ms=0")
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		for len(names(t, parent)) == 0 {
			time.Sleep(time.Millisecond)
		}
		time.Sleep(time.Duration(i) * 700 * time.Microsecond)
		cmd.Process.Kill()
		cmd.Wait()
		// A process that was being started has the owner's lock for a moment.
		eventually(t, "the directories are gone", func() bool {
			tempdir.Sweep(parent, "test-")
			return len(names(t, parent)) == 0
		})
	}
}

// After an owner was killed, its directory goes without another process that sweeps, even if the owner
// and its watchman were stopped, and the watchman was killed before. What links in the directory name
// stays.
func TestWatchmanRemoves(t *testing.T) {
	for name, before := range map[string]func(t *testing.T, owner int, watchmen func() []int){
		"killed": func(*testing.T, int, func() []int) {},
		"stopped": func(t *testing.T, owner int, watchmen func() []int) {
			for _, pid := range append(watchmen(), owner) {
				if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
					t.Fatal(err)
				}
			}
		},
		"watchman killed before": func(t *testing.T, _ int, watchmen func() []int) {
			was := watchmen()
			for _, pid := range was {
				if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
					t.Fatal(err)
				}
			}
			eventually(t, "another watchman", func() bool {
				is := watchmen()
				return len(is) > 0 && !slices.Contains(was, is[0])
			})
		},
	} {
		t.Run(name, func(t *testing.T) {
			if runtime.GOOS != "linux" {
				t.Skip("this system does not say where a process works")
			}
			parent, elsewhere := t.TempDir(), t.TempDir()
			file := filepath.Join(elsewhere, "file")
			if err := os.WriteFile(file, nil, 0o600); err != nil {
				t.Fatal(err)
			}
			cmd := exec.Command(os.Args[0])
			cmd.Env = append(os.Environ(), inDir+"="+parent, stays+"="+elsewhere)
			said, err := cmd.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			var dir string
			if _, err := fmt.Fscan(said, &dir); err != nil {
				t.Fatal(err)
			}
			before(t, cmd.Process.Pid, func() []int { return worksIn(dir) })
			cmd.Process.Kill()
			cmd.Wait()
			eventually(t, "the directory is gone", func() bool { return len(names(t, parent)) == 0 })
			eventually(t, "the watchman is gone", func() bool { return len(worksIn(dir)) == 0 })
			if _, err := os.Stat(file); err != nil {
				t.Errorf("a link was followed: %v", err)
			}
		})
	}
}

// worksIn returns the processes whose working directory is the directory, removed or not.
func worksIn(dir string) (pids []int) {
	links, _ := filepath.Glob("/proc/[0-9]*/cwd")
	for _, link := range links {
		if cwd, _ := os.Readlink(link); strings.TrimSuffix(cwd, " (deleted)") == dir {
			pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(link)))
			pids = append(pids, pid)
		}
	}
	return pids
}

// eventually fails the test if the condition doesn't come true in far more than enough time.
func eventually(t *testing.T, what string, condition func() bool) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); !condition(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("waited too long: %s", what)
		}
	}
}

// hold makes a directory with files, and links to the place that stays, and keeps the directory.
func hold(parent, elsewhere string) error {
	dir, err := tempdir.Make(parent, "test-")
	if err != nil {
		return err
	}
	for _, name := range []string{"a name", ".hidden", "..more", "-rf"} {
		if err := errors.Join(
			os.MkdirAll(filepath.Join(dir.Path(), name, "deep"), 0o700),
			os.Symlink(elsewhere, filepath.Join(dir.Path(), name, "link"))); err != nil {
			return err
		}
	}
	if err := os.Symlink(elsewhere, filepath.Join(dir.Path(), "link")); err != nil {
		return err
	}
	fmt.Println(dir.Path())
	select {}
}

// A directory is removed by its owner only, as long as it has one; what
// isn't ours stays.
func TestSweepSpares(t *testing.T) {
	parent, elsewhere := t.TempDir(), t.TempDir()
	dir, err := tempdir.Make(parent, "test-")
	if err != nil {
		t.Fatal(err)
	}
	if filepath.Dir(dir.Path()) != parent {
		t.Errorf("it was made at %s", dir.Path())
	}
	for _, file := range []string{
		filepath.Join(parent, "test-theirs", "file"), // who has no owner file is nobody's of ours
		filepath.Join(parent, "other", "owner"),      // another name
		filepath.Join(elsewhere, "owner"),            // behind a link
		filepath.Join(parent, "test-file"),
	} {
		if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o700), os.WriteFile(file, nil, 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(elsewhere, filepath.Join(parent, "test-link")); err != nil {
		t.Fatal(err)
	}
	if tempdir.Abandoned(dir.Path()) || tempdir.Abandoned(filepath.Join(parent, "test-theirs")) || tempdir.Abandoned(filepath.Join(parent, "test-link")) {
		t.Error("a directory is abandoned whose owner lives, or has no owner")
	}
	want := append(names(t, parent), names(t, elsewhere)...)
	tempdir.Sweep(parent, "test-")
	if got := append(names(t, parent), names(t, elsewhere)...); !slices.Equal(got, want) {
		t.Errorf("there is %v, and was %v", got, want)
	}
	if err := dir.Remove(); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(dir.Path()); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("it is still there: %v", err)
	}
}

// Many may make directories while others sweep: each gets one that stays.
func TestMakeBesideSweeps(t *testing.T) {
	parent := t.TempDir()
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for range 50 {
				dir, err := tempdir.Make(parent, "test-")
				if err != nil {
					t.Error(err)
					return
				}
				file := filepath.Join(dir.Path(), "file")
				if err := errors.Join(os.WriteFile(file, nil, 0o600), os.Remove(file), dir.Remove()); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	if left := names(t, parent); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
}

func TestMakeFails(t *testing.T) {
	if _, err := tempdir.Make(filepath.Join(t.TempDir(), "none"), "test-"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("error %v", err)
	}
}

// A sweep goes through no link of another user's, and takes no directory that others can write to.
func TestSweepFollowsNothing(t *testing.T) {
	parent, home := t.TempDir(), t.TempDir()
	put := func(files ...string) {
		t.Helper()
		for _, file := range files {
			if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o700), os.WriteFile(file, nil, 0o600)); err != nil {
				t.Fatal(err)
			}
		}
	}
	at := func(name string) string { return filepath.Join(parent, name) }
	put(filepath.Join(home, "owner"), filepath.Join(home, "thesis"), // a link to it is swept through, if any is
		filepath.Join(at("test-1"), "owner"),                     // of a process that was killed
		filepath.Join(at("test-2"), "owner"),                     // others may write there
		filepath.Join(at("test-3"), "thesis"),                    // its owner is a link
		filepath.Join(at("test-notes"), "owner"),                 // of a user who has such a name
		filepath.Join(at("test-4"), "dir", "file"), at("test-5")) // without an owner; a file
	if err := errors.Join(
		os.Chmod(at("test-2"), 0o777),
		os.Symlink(filepath.Join(home, "owner"), filepath.Join(at("test-3"), "owner")),
		os.Symlink(home, at("test-6")), os.Symlink(home, filepath.Join(at("test-1"), "link")),
	); err != nil {
		t.Fatal(err)
	}
	tempdir.Sweep(parent, "test-")
	if got, want := names(t, parent), []string{"test-2", "test-3", "test-4", "test-5", "test-6", "test-notes"}; !slices.Equal(got, want) {
		t.Errorf("there is %v, want %v", got, want)
	}
	if got, want := names(t, home), []string{"owner", "thesis"}; !slices.Equal(got, want) {
		t.Errorf("at home there is %v, want %v", got, want)
	}
	if got := names(t, at("test-3")); len(got) != 2 {
		t.Errorf("beside the link there is %v", got)
	}
}

// A directory that was moved away, with a link in its place, is removed itself, if any is.
func TestRemoveFollowsNothing(t *testing.T) {
	parent, home := t.TempDir(), t.TempDir()
	if err := os.WriteFile(filepath.Join(home, "thesis"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	dir, err := tempdir.Make(parent, "test-")
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(os.Rename(dir.Path(), filepath.Join(parent, "elsewhere")), os.Symlink(home, dir.Path())); err != nil {
		t.Fatal(err)
	}
	_ = dir.Remove() // whatever it says
	if got := names(t, home); len(got) != 1 {
		t.Errorf("at home there is %v", got)
	}
}

// A parent in which another user can replace what is there is refused.
func TestUnsafeParent(t *testing.T) {
	parent := filepath.Join(t.TempDir(), "open")
	if err := os.Mkdir(parent, 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(parent, 0o777); err != nil {
		t.Fatal(err)
	}
	if dir, err := tempdir.Make(parent, "test-"); err == nil {
		t.Errorf("made %s; want an error", dir.Path())
		dir.Remove()
	} else if !strings.Contains(err.Error(), "name another directory") {
		t.Error(err)
	}
	if err := os.Chmod(parent, 0o777|os.ModeSticky); err != nil {
		t.Fatal(err)
	}
	dir, err := tempdir.Make(parent, "test-")
	if err != nil {
		t.Fatal("with the sticky bit: ", err)
	}
	if err := dir.Remove(); err != nil {
		t.Error(err)
	}
}
