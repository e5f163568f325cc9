package postgres

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// A runAs is the user that servers run as: this process's own user, or another one if that is root.
// PostgreSQL refuses to run as root.
type runAs struct {
	other      *syscall.Credential // nil: this process's own user
	namespaces uintptr             // flags of the namespaces of each program; 0 where the system permits none
}

// isolated returns s with a PID and an IPC namespace for each program, where the system permits
// that. The kernel then kills the children of a program with the program, stopped or not, and frees
// the program's System V memory, however this process ends. The probe is a program that ends at
// once.
func (s runAs) isolated(ctx context.Context, probe string, args ...string) runAs {
	s.namespaces = syscall.CLONE_NEWPID | syscall.CLONE_NEWIPC
	if os.Geteuid() != 0 {
		s.namespaces |= syscall.CLONE_NEWUSER
	}
	cmd := exec.CommandContext(ctx, probe, args...)
	s.run(cmd)
	if _, err := s.output(cmd); err != nil {
		s.namespaces = 0
	}
	return s
}

// findServant returns the user that servers run as.
func findServant() (runAs, error) {
	if os.Geteuid() != 0 {
		return runAs{}, nil
	}
	for _, name := range []string{"postgres", "nobody"} {
		u, err := user.Lookup(name)
		if err != nil {
			continue
		}
		uid, err := strconv.ParseUint(u.Uid, 10, 32)
		if err != nil {
			return runAs{}, err
		}
		gid, err := strconv.ParseUint(u.Gid, 10, 32)
		if err != nil {
			return runAs{}, err
		}
		return runAs{other: &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}}, nil
	}
	return runAs{}, errors.New("it doesn't run as root, and there is neither a user postgres nor nobody")
}

// opens lets another user pass through a directory of this process.
func (s runAs) opens(dir string) error {
	if s.other == nil {
		return nil
	}
	if err := os.Chmod(dir, 0o711); err != nil {
		return err
	}
	return s.reaches(dir)
}

// give makes the servers' user the owner of a path and everything in it.
func (s runAs) give(path string) error {
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

// reaches returns an error if the servers' user can't enter a directory.
func (s runAs) reaches(dir string) error {
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

// run configures a command to run as the servers' user.
func (s runAs) run(cmd *exec.Cmd) {
	attr := &syscall.SysProcAttr{Credential: s.other, Cloneflags: s.namespaces}
	if s.namespaces&syscall.CLONE_NEWUSER != 0 {
		attr.UidMappings = []syscall.SysProcIDMap{{ContainerID: os.Geteuid(), HostID: os.Geteuid(), Size: 1}}
		attr.GidMappings = []syscall.SysProcIDMap{{ContainerID: os.Getegid(), HostID: os.Getegid(), Size: 1}}
	}
	cmd.SysProcAttr = attr
}

// output runs a command that [runAs.run] configured, and returns the command's output. The command
// is killed if this process ends.
func (s runAs) output(cmd *exec.Cmd) ([]byte, error) {
	runtime.LockOSThread() // the kernel sends the signal when the thread ends
	defer runtime.UnlockOSThread()
	cmd.SysProcAttr.Pdeathsig = syscall.SIGKILL
	return cmd.CombinedOutput()
}

// release makes the kernel free the System V segment of a server as soon as no process uses the
// segment, even after SIGKILL. It affects only the segment that the server's lock file names, and
// only if the server's process created that segment. A server with its own IPC namespace needs no
// release. A missing lock file or segment is no error.
func (s runAs) release(data string, pid int) error {
	if s.namespaces != 0 {
		return nil
	}
	text, err := os.ReadFile(filepath.Join(data, lockFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	id, ok := segmentOf(string(text), pid)
	if !ok {
		return nil
	}
	var is unix.SysvShmDesc
	if _, err := unix.SysvShmCtl(id, unix.IPC_STAT, &is); err != nil || int(is.Cpid) != pid {
		return nil // freed already; the number may belong to another segment
	}
	if _, err := unix.SysvShmCtl(id, unix.IPC_RMID, nil); err != nil {
		return fmt.Errorf("free the System V segment %d: %w", id, err)
	}
	return nil
}

// lockFile is the file in a data directory that names the process and the System V segment that use
// the directory.
const lockFile = "postmaster.pid"

// segmentOf returns the number of the System V segment in a lock file that the given process wrote.
// Line 1 is the process, line 7 the segment's key and number.
func segmentOf(text string, pid int) (id int, ok bool) {
	lines := strings.Split(text, "\n")
	if len(lines) < 7 || strings.TrimSpace(lines[0]) != strconv.Itoa(pid) {
		return 0, false
	}
	words := strings.Fields(lines[6])
	if len(words) != 2 {
		return 0, false
	}
	id, err := strconv.Atoi(words[1])
	return id, err == nil && id >= 0
}
