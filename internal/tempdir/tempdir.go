// Package tempdir makes temporary directories that don't outlast the process that made them: a
// watchman removes the directory of a process that was killed. If the watchman was killed too, the
// next process that makes such a directory removes the old one.
//
// A parent directory and the beginning of a name come in, a [Dir] goes out.
//
// Other users of the machine may write to the parent, such as /tmp: they can make entries with any
// name there. So a directory counts as ours only if this user owns it and nobody else may write to
// it, and what is in it is opened and removed without following symbolic links.
package tempdir

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/lockfault/lockfault/internal/below"
	"github.com/lockfault/lockfault/internal/reaper"
)

// ownerName is the file in a directory on which its owner holds a lock as long
// as it lives. It is the last one to be removed: who finds a directory without
// an owner can't tell whose it is, and leaves it.
const ownerName = "owner"

// A Dir is a temporary directory that belongs to this process. [Make] makes one.
type Dir struct {
	path     string
	dir      *below.Dir
	owner    *os.File       // nil where the system has no such locks
	watchman *reaper.Reaper // nil where there is no shell
}

// Make makes a directory whose name begins with the prefix, after it has swept
// those. An empty parent means [os.TempDir]. The directory must be removed by
// its [Dir.Remove]. Make returns an error if another user can replace what is in the parent.
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

// Path returns where the directory is.
func (d *Dir) Path() string { return d.path }

// Remove removes the directory with all that is in it. What it can't remove the
// next Sweep will try. Call it once.
func (d *Dir) Remove() error {
	err := empty(d.dir)
	if err == nil {
		// An empty directory without an owner: a Sweep of another process may be faster.
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

// empty removes what is in a directory, its owner last.
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
