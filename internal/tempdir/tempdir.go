// Package tempdir makes temporary directories that do not outlast the process that made them: a
// watchman removes the directory of a killed process. If the watchman was killed, too, the next
// process that makes such a directory removes the old one.
//
// The inputs are a parent directory and a name prefix; the output is a [Dir].
//
// Other users of the machine may write to the parent, such as /tmp, and make entries with any name
// there. Therefore a directory counts as ours only if this user owns it and no other user may write
// to it. Its contents are opened and removed without following symbolic links.
package tempdir

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/lockfault/lockfault/internal/below"
	"github.com/lockfault/lockfault/internal/reaper"
)

// ownerName is the file in a directory on which its owner holds a lock for its lifetime. It is
// removed last: a directory without this file has no known owner, and Sweep does not remove it
// unless it is empty.
const ownerName = "owner"

// Dir is a temporary directory of this process. Make it with [Make].
type Dir struct {
	path     string
	dir      *below.Dir
	owner    *os.File       // nil on systems without such locks
	watchman *reaper.Reaper // nil on systems without a shell
}

// Make makes a directory whose name begins with the prefix, after a Sweep with that prefix. An
// empty parent means [os.TempDir]. The caller must call [Dir.Remove]. Make returns an error if
// another user can replace entries of the parent.
func Make(parent, prefix string) (*Dir, error) {
	if parent == "" {
		parent = os.TempDir()
	}
	parent, err := filepath.Abs(parent)
	if err != nil {
		return nil, err
	}
	if err := below.CheckParents(filepath.Join(parent, prefix)); err != nil {
		return nil, fmt.Errorf("make a directory in %s: %w", parent, err)
	}
	Sweep(parent, prefix)
	for range 100 {
		path, err := os.MkdirTemp(parent, prefix)
		if err != nil {
			return nil, err
		}
		dir, owner, err := own(path)
		if err == nil {
			return &Dir{path, dir, owner, watch(path)}, nil
		}
		if !errors.Is(err, errSwept) {
			return nil, errors.Join(err, os.Remove(path))
		}
	}
	return nil, fmt.Errorf("make a directory in %s: others remove each before it is whole", parent)
}

// Path returns the directory's path.
func (d *Dir) Path() string { return d.path }

// Remove removes the directory and its contents. The next Sweep removes what Remove cannot remove.
// Call it once.
func (d *Dir) Remove() error {
	err := empty(d.dir)
	if err == nil {
		// The directory is empty and has no owner: a Sweep of another process may remove it first.
		if err = os.Remove(d.path); errors.Is(err, os.ErrNotExist) {
			err = nil
		}
	}
	err = errors.Join(err, d.dir.Close())
	if d.owner != nil {
		err = errors.Join(err, d.owner.Close())
	}
	return errors.Join(err, dismiss(d.watchman))
}

// empty removes the contents of a directory, the owner's file last.
func empty(dir *below.Dir) error {
	entries, err := dir.ReadDir(".")
	for _, entry := range entries {
		if entry.Name() != ownerName {
			err = errors.Join(err, dir.RemoveAll(entry.Name()))
		}
	}
	if err != nil {
		return err
	}
	return dir.RemoveAll(ownerName)
}
