//go:build unix

package tempdir

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"

	"github.com/lockfault/lockfault/internal/flock"
)

// errSwept says that somebody swept a directory before it had an owner.
var errSwept = errors.New("it was swept")

// own makes this process the owner of a directory that it has just made.
func own(dir string) (*os.File, error) {
	owner, err := os.OpenFile(filepath.Join(dir, ownerName), os.O_CREATE|os.O_RDWR, 0o600)
	if errors.Is(err, os.ErrNotExist) {
		return nil, errSwept
	}
	if err != nil {
		return nil, err
	}
	err = flock.Take(owner)
	if err == nil || errors.Is(err, flock.ErrTaken) {
		// Who sweeps may have got the lock first, and let it go with the file.
		mine, statErr := owner.Stat()
		if there, thereErr := os.Stat(owner.Name()); err == nil && statErr == nil && thereErr == nil && os.SameFile(mine, there) {
			return owner, nil
		}
		err = errSwept
	} else {
		err = fmt.Errorf("lock %s: %w", owner.Name(), err)
	}
	owner.Close()
	return nil, err
}

// Abandoned reports whether a directory that [Make] made is there, belongs to this user, and its owner has
// died.
func Abandoned(dir string) bool {
	owner := abandoned(dir)
	if owner == nil {
		return false
	}
	owner.Close()
	return true
}

// mine reports whether a path is a directory of this user, and no link. In a place like /tmp no other
// user can put another thing there.
func mine(dir string) bool {
	info, err := os.Lstat(dir)
	return err == nil && info.IsDir() && info.Sys().(*syscall.Stat_t).Uid == uint32(os.Geteuid())
}

// abandoned returns the file of a directory's dead owner, which this process locks now; nil if the owner
// lives, or nothing says who the owner is.
func abandoned(dir string) *os.File {
	if !mine(dir) {
		return nil
	}
	owner, err := os.OpenFile(filepath.Join(dir, ownerName), os.O_RDWR|syscall.O_NOFOLLOW, 0)
	if err != nil {
		return nil
	}
	if flock.Take(owner) != nil {
		owner.Close()
		return nil
	}
	return owner
}

// Sweep removes the directories whose names begin with the prefix and whose
// owners have died; an empty parent means [os.TempDir]. What is another user's,
// or can't be removed, stays.
func Sweep(parent, prefix string) {
	if parent == "" {
		parent = os.TempDir()
	}
	dirs, _ := filepath.Glob(filepath.Join(parent, prefix+"*")) // the prefix is no pattern
	for _, dir := range dirs {
		// An empty one has no owner yet, or none any more.
		if !mine(dir) || syscall.Rmdir(dir) == nil {
			continue
		}
		if owner := abandoned(dir); owner != nil {
			_ = remove(dir) // or the next one does
			owner.Close()
		}
	}
}
