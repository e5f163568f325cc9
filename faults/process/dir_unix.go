//go:build unix

package process

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// A host's directory is called dirPrefix and something. While its owner lives
// it holds a lock on the file lockName in it.
const (
	dirPrefix = "lockfault-servers-"
	lockName  = "owner"
)

// makeDir makes a directory for one host, after it has removed those whose
// owners died without a word. The lock must be closed when it is removed.
func makeDir(parent string) (dir string, lock *os.File, err error) {
	if parent == "" {
		parent = os.TempDir()
	}
	if parent, err = filepath.Abs(parent); err != nil {
		return "", nil, err
	}
	Sweep(parent)
	// It gets its name, by which others may remove it, when it is locked.
	draft, err := os.MkdirTemp(parent, "lockfault-")
	if err != nil {
		return "", nil, err
	}
	defer os.RemoveAll(draft)
	lock, err = os.OpenFile(filepath.Join(draft, lockName), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return "", nil, err
	}
	if err := lockFile(lock); err != nil {
		lock.Close()
		return "", nil, fmt.Errorf("lock %s: %w", lock.Name(), err)
	}
	dir = filepath.Join(parent, dirPrefix+strings.TrimPrefix(filepath.Base(draft), "lockfault-"))
	if err := os.Rename(draft, dir); err != nil {
		lock.Close()
		return "", nil, err
	}
	return dir, lock, nil
}

// Sweep removes the directories of hosts whose processes died without a word;
// an empty parent means [os.TempDir]. [New] does that first. What can't be
// removed is another user's, and stays.
func Sweep(parent string) {
	if parent == "" {
		parent = os.TempDir()
	}
	dirs, _ := filepath.Glob(filepath.Join(parent, dirPrefix+"*")) // the pattern is right
	for _, dir := range dirs {
		lock, err := os.OpenFile(filepath.Join(dir, lockName), os.O_RDWR, 0)
		if err != nil {
			continue
		}
		if lockFile(lock) == nil {
			os.RemoveAll(dir)
		}
		lock.Close()
	}
}

// lockFile locks the file, or says that another one has.
func lockFile(f *os.File) error {
	return syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
}
