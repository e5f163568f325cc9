// Package atomicdir replaces several entries of a directory by new entries with the same names, all
// at one instant. A reader finds, and a process killed at any moment leaves, all the old entries or
// all the new ones.
//
// The system can only rename one entry at a time. Therefore each name first becomes a symbolic link
// to its old entry, through one common link. Changing the common link is the instant of the
// replacement. Then each name becomes the entry that its link leads to. Only the change of the
// common link changes what readers see. The inputs are a directory and new entries; the outputs are
// the old entries.
//
// [File] replaces a single file. No function follows a symbolic link below a directory.
package atomicdir

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"

	"github.com/lockfault/lockfault/internal/below"
)

// Place is a directory with entries to replace. Only one goroutine of one process may use a place
// at a time.
type Place struct {
	// Dir is the directory. Work is the name of a directory in Dir for new entries that are not yet
	// in place and for old entries. Both must exist.
	Dir  *below.Dir
	Work string
	// Names are the entries to replace.
	Names []string

	// For tests: step is called between two changes; clumsy simulates a system that cannot exchange
	// directories.
	step   func()
	clumsy bool
}

// Entries of the working directory.
const (
	fresh  = "fresh"
	former = "former"
	now    = "now" // a link to fresh or former; exists only during a replacement
)

// Fresh returns the name of the directory for the new entries.
func (p Place) Fresh() string { return p.work(fresh) }

// Former returns the name of the directory that contains the old entries after a Commit.
func (p Place) Former() string { return p.work(former) }

func (p Place) work(name string) string { return filepath.Join(p.Work, name) }

// Commit replaces the entries by the new ones, which it moves out of Fresh; old entries without a
// successor are removed from Dir. Former must not exist: Commit makes it and moves the old entries
// there. After an error, or after the death of a process, Settle completes or undoes the
// replacement.
//
// On a system that cannot exchange two entries in one call, a name is missing for a moment. If
// symbolic links cannot be made, some names are new for a moment while others are still old.
func (p Place) Commit() error {
	if err := p.Dir.Mkdir(p.Former(), 0o755); err != nil {
		return err
	}
	p.stepped()
	if p.Dir.Symlink(former, p.work(now)) != nil {
		return p.commitPlainly()
	}
	p.stepped()
	for _, name := range p.Names {
		if err := p.hide(name); err != nil {
			return errors.Join(err, p.Settle())
		}
	}
	turned := p.work(now + ".new")
	err := p.Dir.Symlink(fresh, turned)
	if err == nil {
		p.stepped()
		err = p.Dir.Rename(turned, p.work(now))
	}
	p.stepped()
	return errors.Join(err, p.Settle())
}

// hide replaces a name by a link that leads, through the common link, to the name's entry.
func (p Place) hide(name string) error {
	visible, old := name, filepath.Join(p.Former(), name)
	if !p.exists(visible) {
		if !p.exists(filepath.Join(p.Fresh(), name)) {
			return nil
		}
		defer p.stepped()
		return p.Dir.Symlink(p.link(name), visible)
	}
	if err := p.Dir.Symlink(p.link(name), old); err != nil {
		return err
	}
	p.stepped()
	defer p.stepped()
	if p.exchange(old, visible) {
		return nil
	}
	if err := p.Dir.Remove(old); err != nil {
		return err
	}
	if err := p.Dir.Rename(visible, old); err != nil {
		return err
	}
	p.stepped()
	return p.Dir.Symlink(p.link(name), visible)
}

// link returns the target of a hidden name.
func (p Place) link(name string) string { return filepath.Join(p.Work, now, name) }

// Unsettled reports whether a Commit has begun and not ended.
func (p Place) Unsettled() bool {
	_, err := p.Dir.Readlink(p.work(now))
	return err == nil
}

// Settle completes a Commit that has begun and not ended. If the instant of the replacement was not
// reached, Settle restores the old entries, and Fresh keeps its entries. Settle has no effect if no
// Commit is pending.
func (p Place) Settle() error {
	_ = p.Dir.Remove(p.work(now + ".new"))
	side, err := p.Dir.Readlink(p.work(now))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if side != fresh && side != former {
		return fmt.Errorf("%s leads to %s, where no run puts reports: remove it", p.Dir.Join(p.work(now)), side)
	}
	for _, name := range p.Names {
		if err := p.show(name, filepath.Join(p.work(side), name)); err != nil {
			return err
		}
	}
	defer p.stepped()
	return p.Dir.Remove(p.work(now))
}

// show replaces a hidden name by the entry that it leads to.
func (p Place) show(name, entry string) error {
	visible := name
	leads, _ := p.Dir.Readlink(visible)
	hidden := leads == p.link(name)
	there := p.exists(entry)
	defer p.stepped()
	switch {
	case p.exists(visible) && !hidden:
		return nil // already done
	case !there && hidden:
		return p.Dir.Remove(visible)
	case !there:
		return nil
	case hidden && p.exchange(entry, visible):
		p.stepped()
		return p.Dir.Remove(entry) // the link
	}
	if hidden {
		if err := p.Dir.Remove(visible); err != nil {
			return err
		}
		p.stepped()
	}
	return p.Dir.Rename(entry, visible)
}

// commitPlainly replaces the entries one after the other.
func (p Place) commitPlainly() error {
	for _, name := range p.Names {
		visible, next := name, filepath.Join(p.Fresh(), name)
		if p.exists(visible) {
			if err := p.Dir.Rename(visible, filepath.Join(p.Former(), name)); err != nil {
				return err
			}
		}
		if p.exists(next) {
			if err := p.Dir.Rename(next, visible); err != nil {
				return err
			}
		}
	}
	return nil
}

func (p Place) exists(name string) bool {
	_, err := p.Dir.Lstat(name)
	return err == nil
}

// exchange exchanges two entries at one instant, and reports whether it succeeded.
func (p Place) exchange(a, b string) bool {
	if p.clumsy {
		return false
	}
	dirA, err := p.Dir.OpenDir(filepath.Dir(a))
	if err != nil {
		return false
	}
	defer dirA.Close()
	dirB, err := p.Dir.OpenDir(filepath.Dir(b))
	if err != nil {
		return false
	}
	defer dirB.Close()
	return exchange(dirA, filepath.Base(a), dirB, filepath.Base(b))
}

func (p Place) stepped() {
	if p.step != nil {
		p.step()
	}
}
