package postgres

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/lockfault/lockfault/faults/real"
)

// inDir returns the processes whose working directory is the directory, the oldest first.
func inDir(dir string) (pids []int) {
	all, _ := filepath.Glob("/proc/[0-9]*/cwd")
	for _, link := range all {
		if cwd, _ := os.Readlink(link); cwd == dir {
			pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(link)))
			pids = append(pids, pid)
		}
	}
	return pids
}

// postmaster returns the process of a server whose parent is not of the server.
func postmaster(t *testing.T, s *server) int {
	t.Helper()
	pids := inDir(s.data())
	for _, pid := range pids {
		text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		words := strings.Fields(string(text[strings.LastIndexByte(string(text), ')')+1:]))
		if len(words) > 1 && words[1] == strconv.Itoa(os.Getpid()) {
			return pid
		}
	}
	t.Fatalf("no process of %v is the server's first", pids)
	return 0
}

// segments returns the System V segments that a process made, as this process sees them.
func segments(t *testing.T, pid int) (list []string) {
	t.Helper()
	text, err := os.ReadFile("/proc/sysvipc/shm")
	if err != nil {
		t.Skip(err)
	}
	for _, line := range strings.Split(string(text), "\n") {
		// key shmid perms size cpid lpid nattch ...
		if words := strings.Fields(line); len(words) > 6 && words[4] == strconv.Itoa(pid) {
			list = append(list, line)
		}
	}
	return list
}

// A server that is killed leaves no shared memory, with a namespace of its own and without.
func TestKilledServersLeaveNoSharedMemory(t *testing.T) {
	for name, alone := range map[string]bool{"own namespace": true, "shared namespace": false} {
		t.Run(name, func(t *testing.T) {
			h := host(t, false)
			if alone && h.options.Installation.runs.namespaces == 0 {
				t.Skip("this system permits no namespaces")
			}
			if !alone {
				h.options.Installation.runs.namespaces = 0
			}
			s := start(t, h, real.ServerSpec{Name: "n1-0"})
			for range 2 {
				pid := postmaster(t, s)
				maps, err := os.ReadFile(fmt.Sprintf("/proc/%d/maps", pid))
				if err != nil {
					t.Fatal(err)
				}
				if strings.Contains(string(maps), "/dev/shm/") {
					t.Error("the server has shared memory outside of its directory")
				}
				if err := s.Kill(); err != nil {
					t.Fatal(err)
				}
				if left := segments(t, pid); len(left) > 0 {
					t.Errorf("process %d leaves System V segments:\n%s", pid, strings.Join(left, "\n"))
				}
				if err := s.Restart(t.Context(), false); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
}

// The children of a server end with the server, even if something has stopped all of them.
func TestStoppedChildrenDieWithTheirServer(t *testing.T) {
	h := host(t, false)
	if h.options.Installation.runs.namespaces == 0 {
		t.Skip("this system permits no namespaces")
	}
	s := start(t, h, real.ServerSpec{Name: "n1-0"})
	first := postmaster(t, s)
	all := inDir(s.data())
	if len(all) < 3 {
		t.Fatalf("the server has %d processes", len(all))
	}
	for _, pid := range all {
		if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
			t.Fatal(err)
		}
	}
	if err := syscall.Kill(first, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	left := inDir(s.data())
	for deadline := time.Now().Add(time.Minute); len(left) > 0 && time.Now().Before(deadline); left = inDir(s.data()) {
		time.Sleep(10 * time.Millisecond)
	}
	for _, pid := range left {
		t.Errorf("process %d outlives its server", pid)
		_ = syscall.Kill(pid, syscall.SIGKILL)
	}
}

func TestSegmentOf(t *testing.T) {
	const whole = "12\n/data\n1700000000\n5432\n/run\nlocalhost\n  9568265    32768\nready   \n"
	for _, c := range []struct {
		text string
		pid  int
		id   int
		ok   bool
	}{
		{whole, 12, 32768, true},
		{whole, 13, 0, false},
		{whole[:30], 12, 0, false},
		{"", 12, 0, false},
		{"12\n\n\n\n\n\n1 -5\n", 12, 0, false},
		{"12\n\n\n\n\n\n1 x\n", 12, 0, false},
	} {
		if id, ok := segmentOf(c.text, c.pid); ok != c.ok || ok && id != c.id {
			t.Errorf("segment of %q for process %d: %d, %t", c.text, c.pid, id, ok)
		}
	}
}
