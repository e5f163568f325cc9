//go:build unix

package child

import (
	"fmt"
	"os/exec"

	"github.com/lockfault/lockfault/internal/watchman"
)

// shell is a guard for systems that have no better: one that reads what to watch
// from its watchman's pipe. What it is told twice it knows once, and what it doesn't know it need not forget.
type shell struct{ *watchman.Watchman }

// watching is the shell's program: "+ 12" is watched and "- 12" no longer.
const watching = `
list=' '
while read -r what pid; do
	case "$what$list" in
	"+"*" $pid "*) ;;
	"+"*) list="$list$pid " ;;
	"-"*" $pid "*) list="${list%% $pid *} ${list##* $pid }" ;;
	esac
done
for pid in $list; do kill -9 "-$pid"; done
`

// newGroupGuard returns a guard that kills whole groups.
func newGroupGuard() (guard, error) { return newShell() }

func newShell() (shell, error) {
	w, err := watchman.Start(exec.Command("/bin/sh", "-c", watching))
	return shell{w}, err
}

func (s shell) watch(pid int) error  { return s.Tell(fmt.Sprint("+ ", pid)) }
func (s shell) forget(pid int) error { return s.Tell(fmt.Sprint("- ", pid)) }
func (s shell) close() error         { return s.Close() }
