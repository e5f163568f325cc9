// Package replace puts several entries of a directory in the place of others of
// the same names, all at one instant: whoever looks, and whoever kills this
// process at any moment, finds all the old ones or all the new ones.
//
// The system can only rename one thing at a time. So each name first becomes a
// link that leads where it led before, through one link that is common to all
// of them: turning that one round is the instant. Then each name becomes what it
// leads to. No step but that one changes what anybody reads. A directory
// and new entries come in, the old entries go out.
//
// [File] replaces a single file. Nothing here follows a symbolic link below a directory.
package atomicdir

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"

	"github.com/lockfault/lockfault/internal/below"
)

// A Place is a directory some of whose entries are replaced. Only one goroutine of one process may use a place at a time.
type Place struct {
	// Dir is the directory, and Work the name of a directory in it for what
	// has not come to its place yet, or has left it. Both must exist.
	Dir  *below.Dir
	Work string
	// Names are the entries that are replaced.
	Names []string

	// For tests: what is called between two changes, and whether to do as if
	// the system couldn't exchange directories.
	step   func()
	clumsy bool
}

// The entries of the working directory.
const (
	fresh  = "fresh"
	former = "former"
	now    = "now" // a link to one of the two; only while entries are replaced
)

// Fresh returns the name of the directory in which the new entries have to be.
func (p Place) Fresh() string { return p.work(fresh) }

// Former returns the name of the directory in which the old entries are afterwards.
func (p Place) Former() string { return p.work(former) }

func (p Place) work(name string) string { return filepath.Join(p.Work, name) }

// Commit replaces the entries by the new ones, which it takes out of Fresh;
// those that have no successor go. Former must not exist: it is made, and
// gets the old entries. After an error, or in a process that has died meanwhile,
// Settle goes on.
//
// Where the system can't exchange two entries by one call, a name is
// missing for a moment; where not everybody may make links, some of
// them are already new for a moment while others are still old.
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

// hide makes a name a link that leads through the common one to where its entry
// is now.
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

// link returns where a hidden name leads.
func (p Place) link(name string) string { return filepath.Join(p.Work, now, name) }

// Unsettled reports whether a Commit has begun and not ended.
func (p Place) Unsettled() bool {
	_, err := p.Dir.Readlink(p.work(now))
	return err == nil
}

// Settle ends what a Commit has begun that didn't end: if the instant was not
// reached, everything is as it was before, and Fresh has its entries still. It does
// nothing if there is nothing to do.
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

// show makes a hidden name the entry that it leads to.
func (p Place) show(name, entry string) error {
	visible := name
	leads, _ := p.Dir.Readlink(visible)
	hidden := leads == p.link(name)
	there := p.exists(entry)
	defer p.stepped()
	switch {
	case p.exists(visible) && !hidden:
		return nil // it is done
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

// commitPlainly replaces one after the other.
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

// exchange exchanges two entries at one instant, and reports whether it could.
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
