package postgres

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"

	"github.com/lockfault/lockfault/internal/tempdir"
)

// A MissingError says that there is no PostgreSQL, and what to do.
type MissingError struct{ Why error }

func (e *MissingError) Error() string {
	return fmt.Sprintf("there is no PostgreSQL that could be started (%v): install its server (apt-get install postgresql) or have the directory of initdb and postgres on PATH", e.Why)
}

func (e *MissingError) Unwrap() error { return e.Why }

// least is the first version that can be told to follow another primary while it runs.
const least = 13

// An Installation is PostgreSQL as it is on this machine.
type Installation struct {
	// Dir has its programs.
	Dir string
	// Version is as it says itself, such as 15.14.
	Version string
	// template is a cluster that nothing was done to.
	template string
	// runs is who its servers run as.
	runs runAs
}

// Find returns PostgreSQL, the one on PATH or else the newest of those that distributions have installed,
// with an empty cluster that is made once, in lockfault's place in the user's cache directory. It blocks
// until that is done, some seconds for the first time. The error is a *[MissingError] unless ctx is done, or there is no such place.
func Find(ctx context.Context) (*Installation, error) {
	if runtime.GOOS != "linux" {
		return nil, &MissingError{errors.New("its processes can be stopped together on Linux alone")}
	}
	in, err := find(ctx)
	if err == nil {
		in.runs, err = findServant()
	}
	if err == nil {
		in.runs = in.runs.isolated(ctx, in.program("postgres"), "--version")
		cache, none := os.UserCacheDir()
		if none == nil {
			cache = filepath.Join(cache, "lockfault")
			none = os.MkdirAll(cache, 0o700)
		}
		if none != nil {
			return nil, fmt.Errorf("there is no place for an empty cluster of PostgreSQL: %w: name a directory that can be written to with XDG_CACHE_HOME", none)
		}
		in.template, err = in.makeTemplate(ctx, cache)
	}
	switch {
	case ctx.Err() != nil:
		return nil, context.Cause(ctx)
	case err != nil:
		return nil, &MissingError{err}
	}
	return in, nil
}

func find(ctx context.Context) (best *Installation, err error) {
	var dirs []string
	if path, missing := exec.LookPath("postgres"); missing == nil {
		if path, err = filepath.EvalSymlinks(path); err != nil {
			return nil, err
		}
		dirs = []string{filepath.Dir(path)}
	} else {
		// Debian and its kin, and Red Hat's, keep servers of several versions, and none on PATH.
		for _, pattern := range []string{"/usr/lib/postgresql/*/bin", "/usr/pgsql-*/bin"} {
			more, _ := filepath.Glob(pattern) // the patterns are well formed
			dirs = append(dirs, more...)
		}
	}
	err = errors.New("it is not on PATH")
	for _, dir := range dirs {
		in := &Installation{Dir: dir}
		if _, missing := exec.LookPath(in.program("initdb")); missing != nil {
			err = missing
			continue
		}
		out, failed := exec.CommandContext(ctx, in.program("postgres"), "--version").Output()
		fields := strings.Fields(string(out)) // postgres (PostgreSQL) 15.14 (Debian ...)
		if failed != nil || len(fields) < 3 {
			err = fmt.Errorf("%s says no version", in.program("postgres"))
			continue
		}
		in.Version = fields[2]
		switch {
		case in.major() < least:
			err = fmt.Errorf("%s is of version %s, and %d is the first that will do", in.program("postgres"), in.Version, least)
		case best == nil || in.major() > best.major():
			best = in
		}
	}
	if best == nil {
		return nil, err
	}
	return best, nil
}

func (in *Installation) program(name string) string { return filepath.Join(in.Dir, name) }

// major is the first number of its version, 0 if that is none.
func (in *Installation) major() int {
	digits := in.Version
	if i := strings.IndexFunc(digits, func(r rune) bool { return r < '0' || r > '9' }); i >= 0 {
		digits = digits[:i]
	}
	n, _ := strconv.Atoi(digits) // none: 0
	return n
}

// as has a command run as the servers' user.
func (in *Installation) as(cmd *exec.Cmd) *exec.Cmd {
	cmd.Env = environment()
	in.runs.run(cmd)
	return cmd
}

// environment is what servers inherit: everything but what would change how they are set up.
func environment() (list []string) {
	for _, entry := range os.Environ() {
		if !strings.HasPrefix(entry, "PG") && !strings.HasPrefix(entry, "LC_") && !strings.HasPrefix(entry, "LANG") && !strings.HasPrefix(entry, "LD_PRELOAD=") {
			list = append(list, entry)
		}
	}
	return append(list, "LC_ALL=C", "TZ=UTC")
}

// Its superuser, whom no password lets in, and the database.
const (
	superuser = "postgres"
	database  = "postgres"
)

// initPrefix is how the name of the directory begins in which an empty cluster is made.
const initPrefix = "lockfault-initdb-"

// makeTemplate makes the empty cluster in a directory, unless it is there. Segments of the log are small, since a
// server has some, and zeroes are written into each.
func (in *Installation) makeTemplate(ctx context.Context, cache string) (_ string, err error) {
	args := []string{"--username", superuser, "--auth", "reject", "--encoding", "UTF8", "--locale", "C", "--wal-segsize", "1", "--no-sync", "--no-instructions"}
	sum := sha256.Sum256([]byte(strings.Join(append(args, in.Dir, in.Version), "\x00")))
	template := filepath.Join(cache, "postgres-"+hex.EncodeToString(sum[:8]))
	if _, err := os.Stat(template); err == nil {
		return template, nil
	}
	// Where its user may write; the cache is nobody's business.
	if err := in.runs.reaches(os.TempDir()); err != nil {
		return "", err
	}
	place, err := tempdir.Make("", initPrefix)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, place.Remove()) }()
	if err := in.runs.opens(place.Path()); err != nil {
		return "", err
	}
	work := filepath.Join(place.Path(), "initdb")
	if err := os.Mkdir(work, 0o700); err != nil {
		return "", err
	}
	if err := in.runs.give(work); err != nil {
		return "", err
	}
	cmd := in.as(exec.CommandContext(ctx, in.program("initdb"), append(args, "--pgdata", filepath.Join(work, "data"))...))
	cmd.Dir = work
	if said, err := in.runs.output(cmd); err != nil {
		lines := strings.Split(strings.TrimSpace(string(said)), "\n")
		return "", fmt.Errorf("initdb: %w: %s", err, lines[len(lines)-1])
	}
	making, err := tempdir.Make(cache, "making-postgres-")
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, making.Remove()) }()
	made := filepath.Join(making.Path(), "data")
	if err := os.CopyFS(made, os.DirFS(filepath.Join(work, "data"))); err != nil {
		return "", err
	}
	if err := os.Rename(made, template); err != nil {
		if _, there := os.Stat(template); there == nil {
			return template, nil // somebody else made the same
		}
		return "", err
	}
	return template, nil
}

// clone has a server's data directory be a copy of the empty cluster, which is still this process's.
func (in *Installation) clone(dir string) error {
	if err := os.CopyFS(dir, os.DirFS(in.template)); err != nil {
		return err
	}
	return os.Chmod(dir, 0o700)
}
