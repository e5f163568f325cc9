//go:build unix

package below

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
)

// CheckParents returns an error if another user of the machine can replace a file or directory of
// the path. Another user can if a directory or symbolic link on the way belongs to a user other
// than this user, root and the owner of "/", or if others may write to such a directory and it is
// not sticky (as /tmp is). The path need not exist; the missing part is not checked.
func CheckParents(path string) error {
	path, err := filepath.Abs(path)
	if err != nil {
		return err
	}
	top, err := os.Stat("/")
	if err != nil {
		return err
	}
	trusted := []int{0, os.Geteuid(), owner(top)}
	at, rest := "/", elements(path)
	for links := 0; ; {
		about, err := os.Lstat(at)
		if os.IsNotExist(err) {
			return nil
		}
		if err != nil {
			return err
		}
		switch {
		case len(rest) == 0 && about.Mode()&fs.ModeSymlink == 0:
			return nil
		case !slices.Contains(trusted, owner(about)):
			return fmt.Errorf("%s belongs to another user (%d), who can change what is below: name another directory", at, owner(about))
		case about.Mode()&fs.ModeSymlink != 0:
			if links++; links > 40 {
				return &fs.PathError{Op: "open", Path: path, Err: syscall.ELOOP}
			}
			to, err := os.Readlink(at)
			if err != nil {
				return err
			}
			if at = filepath.Dir(at); filepath.IsAbs(to) {
				at = "/"
			}
			rest = append(elements(to), rest...)
		case about.IsDir() && about.Mode()&fs.ModeSticky == 0 && shared(about):
			return fmt.Errorf("other users may change what is in %s (mode %#o): name another directory", at, about.Mode().Perm())
		}
		if len(rest) == 0 {
			return nil
		}
		at, rest = filepath.Join(at, rest[0]), rest[1:]
	}
}

// elements returns the names of a path.
func elements(path string) []string {
	return strings.FieldsFunc(path, func(r rune) bool { return r == '/' })
}

func owner(about fs.FileInfo) int { return int(about.Sys().(*syscall.Stat_t).Uid) }

// shared reports whether other users may write to a directory. This user's own group counts as this
// user.
func shared(about fs.FileInfo) bool {
	mode := about.Mode().Perm()
	group := int(about.Sys().(*syscall.Stat_t).Gid)
	return mode&0o002 != 0 || mode&0o020 != 0 && group != 0 && group != os.Getegid()
}
