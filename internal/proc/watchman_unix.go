//go:build unix

package proc

import (
	"fmt"
	"os/exec"
	"sync"

	"github.com/lockfault/lockfault/internal/reaper"
)

// shell is a guard: a process that reads the groups to kill from a pipe. A repeated line or an
// unknown number has no effect.
type shell struct {
	*reaper.Reaper

	mu   sync.Mutex
	pids map[int]bool // watched processes
}

// watching is the shell's program: "+ 12" starts to watch a group and "- 12" ends it. The kernel
// sends SIGHUP to a stopped group whose parent ends, which must not end the shell.
const watching = `
trap '' HUP INT QUIT TERM
list=' '
while read -r what pid; do
	case "$what$list" in
	"+"*" $pid "*) ;;
	"+"*) list="$list$pid " ;;
	"-"*" $pid "*) list="${list%% $pid *} ${list##* $pid }" ;;
	esac
done
for pid in $list; do kill -9 "-$pid"; done
exit 0
`

// newGroupGuard returns a guard that kills whole groups.
func newGroupGuard() (guard, error) {
	s, err := newShell()
	if err != nil {
		return nil, err
	}
	return s, nil
}

func newShell() (*shell, error) {
	s := &shell{pids: map[int]bool{}}
	var err error
	s.Reaper, err = reaper.Start(func() *exec.Cmd { return exec.Command("/bin/sh", "-c", watching) }, s.brief)
	return s, err
}

// brief returns the lines that a replacement shell must read first.
func (s *shell) brief() (lines []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for pid := range s.pids {
		lines = append(lines, fmt.Sprint("+ ", pid))
	}
	return lines
}

func (s *shell) watch(pid int) error {
	s.set(pid, true)
	return s.Send(fmt.Sprint("+ ", pid))
}

func (s *shell) forget(pid int) error {
	s.set(pid, false)
	return s.Send(fmt.Sprint("- ", pid))
}

func (s *shell) set(pid int, watched bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if watched {
		s.pids[pid] = true
	} else {
		delete(s.pids, pid)
	}
}

func (s *shell) close() error { return s.Close() }
