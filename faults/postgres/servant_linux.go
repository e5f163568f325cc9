package postgres

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"syscall"
)

// A servant is who servers run as: this process's own user, or another if that is root, whom PostgreSQL refuses to
// be started by.
type servant struct{ other *syscall.Credential } // nil: this process's own

// findServant returns who servers run as.
func findServant() (servant, error) {
	if os.Geteuid() != 0 {
		return servant{}, nil
	}
	for _, name := range []string{"postgres", "nobody"} {
		u, err := user.Lookup(name)
		if err != nil {
			continue
		}
		uid, err := strconv.ParseUint(u.Uid, 10, 32)
		if err != nil {
			return servant{}, err
		}
		gid, err := strconv.ParseUint(u.Gid, 10, 32)
		if err != nil {
			return servant{}, err
		}
		return servant{&syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}}, nil
	}
	return servant{}, errors.New("it doesn't run as root, and there is neither a user postgres nor nobody")
}

// opens lets the servant, if he is another, get through a directory of this process's.
func (s servant) opens(dir string) error {
	if s.other == nil {
		return nil
	}
	if err := os.Chmod(dir, 0o711); err != nil {
		return err
	}
	return s.reaches(dir)
}

// give makes what is there the servant's.
func (s servant) give(path string) error {
	if s.other == nil {
		return nil
	}
	return filepath.WalkDir(path, func(path string, _ fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		return os.Lchown(path, int(s.other.Uid), int(s.other.Gid))
	})
}

// reaches returns an error if the servant can't get to a directory.
func (s servant) reaches(dir string) error {
	if s.other == nil {
		return nil
	}
	dir, err := filepath.Abs(dir)
	if err != nil {
		return err
	}
	for at := dir; ; at = filepath.Dir(at) {
		info, err := os.Stat(at)
		if err != nil {
			return err
		}
		is, ok := info.Sys().(*syscall.Stat_t)
		enter := fs.FileMode(0o001)
		switch {
		case ok && is.Uid == s.other.Uid:
			enter = 0o100
		case ok && is.Gid == s.other.Gid:
			enter = 0o010
		}
		if info.Mode()&enter == 0 {
			return fmt.Errorf("it doesn't run as root, and who it runs as may not enter %s: name another directory with TMPDIR", at)
		}
		if at == filepath.Dir(at) {
			return nil
		}
	}
}

// run has a command run as the servant.
func (s servant) run(cmd *exec.Cmd) {
	if s.other != nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: s.other}
	}
}
