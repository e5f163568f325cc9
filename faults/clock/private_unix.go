//go:build unix

package clock

import (
	"fmt"
	"os"
	"path/filepath"
	"syscall"
)

// private returns nil if no other user can put a file into dir, or another directory in its place.
// The library in dir is loaded into programs of this user, so it must be safe. Root does not count
// as another user. Members of the group may write to the parent directories, but not to dir itself.
func private(dir string) error {
	dir, err := filepath.Abs(dir)
	if err == nil {
		dir, err = filepath.EvalSymlinks(dir)
	}
	if err != nil {
		return fmt.Errorf("clock: %w", err)
	}
	for at, others := dir, os.FileMode(0o022); ; at, others = filepath.Dir(at), 0o002 {
		info, err := os.Stat(at)
		if err != nil {
			return fmt.Errorf("clock: %w", err)
		}
		if is, ok := info.Sys().(*syscall.Stat_t); ok && is.Uid != 0 && is.Uid != uint32(os.Geteuid()) {
			return fmt.Errorf("clock: keep the shim in %s: %s belongs to another user: name another directory with XDG_CACHE_HOME", dir, at)
		}
		if shared := info.Mode()&os.ModeSticky != 0 && at != dir; info.Mode()&others != 0 && !shared {
			return fmt.Errorf("clock: keep the shim in %s: other users can write to %s (%v): name another directory with XDG_CACHE_HOME", dir, at, info.Mode())
		}
		if at == filepath.Dir(at) {
			return nil
		}
	}
}
