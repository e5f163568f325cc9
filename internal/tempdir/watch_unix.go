//go:build unix

package tempdir

import (
	"os/exec"

	"github.com/lockfault/lockfault/internal/reaper"
)

// clearing is the program of a shell in a directory. After the end of its input, the shell removes
// the contents of its working directory, and then the empty directory $1, unless it has read the
// line "removed". Symbolic links are removed and not followed. Processes that still write into the
// directory are about to die, so the shell retries. The owner's file is removed last: see [Sweep].
const clearing = `
trap '' HUP INT QUIT TERM
while read -r line; do [ "$line" != removed ] || exit 0; done
tries=0
while [ -d "$1" ] && [ $tries -lt 600 ]; do
	for name in * .[!.]* ..?*; do [ "$name" = owner ] || rm -rf -- "./$name"; done 2>/dev/null
	case $(ls -A 2>/dev/null) in
	owner | '') rm -f owner && rmdir -- "$1" 2>/dev/null && exit 0 ;;
	esac
	sleep 0.1
	tries=$((tries + 1))
done
exit 0
`

// watch starts a process that removes a directory of this process soon after this process was
// killed. Without a shell the result is nil, and the next Sweep removes the directory.
func watch(path string) *reaper.Reaper {
	w, err := reaper.Start(func() *exec.Cmd {
		cmd := exec.Command("/bin/sh", "-c", clearing, "sh", path)
		cmd.Dir = path // stays the same directory even if the path changes
		return cmd
	}, nil)
	if err != nil {
		return nil
	}
	return w
}

// dismiss ends the process that watches a removed directory.
func dismiss(w *reaper.Reaper) error {
	_ = w.Send("removed") // fails after Close only
	return w.Close()
}
