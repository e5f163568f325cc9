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

	"github.com/lockfault/lockfault/faults/real/daemon"
	"github.com/lockfault/lockfault/internal/tempdir"
)

// least is the first version whose primary can be changed while the server runs.
const least = 13

// An Installation is a PostgreSQL on this machine.
type Installation struct {
	// Dir is the directory of its programs.
	Dir string
	// Version is the version that it reports, such as 15.14.
	Version string
	// template is the directory of an unused cluster.
	template string
	// runs is the user that its servers run as.
	runs runAs
}

// Find returns PostgreSQL: the one on PATH, or else the newest of those that distributions have
// installed. It makes an empty cluster once, in lockfault's directory in the user's cache, and
// blocks until that is done, some seconds for the first time. The error is a *[daemon.MissingError] unless
// ctx is done, or the cache directory can't be used.
func Find(ctx context.Context) (*Installation, error) {
	if runtime.GOOS != "linux" {
		return nil, missing(errors.New("its processes can be stopped together on Linux alone"))
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
		return nil, missing(err)
	}
	return in, nil
}

func missing(why error) error {
	return &daemon.MissingError{What: "PostgreSQL that could be started", Why: why,
		Cure: "install its server (apt-get install postgresql) or have the directory of initdb and postgres on PATH"}
}

func find(ctx context.Context) (best *Installation, err error) {
	var dirs []string
	if path, missing := exec.LookPath("postgres"); missing == nil {
		if path, err = filepath.EvalSymlinks(path); err != nil {
			return nil, err
		}
		dirs = []string{filepath.Dir(path)}
	} else {
		// Distributions such as Debian and Red Hat install servers of several versions, and none on
		// PATH.
		for _, pattern := range []string{"/usr/lib/postgresql/*/bin", "/usr/pgsql-*/bin"} {
			more, _ := filepath.Glob(pattern) // the patterns are valid
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
		fields := strings.Fields(string(out)) // such as: postgres (PostgreSQL) 15.14 (Debian ...)
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

// major returns the first number of the version, 0 if it has none.
func (in *Installation) major() int {
	digits := in.Version
	if i := strings.IndexFunc(digits, func(r rune) bool { return r < '0' || r > '9' }); i >= 0 {
		digits = digits[:i]
	}
	n, _ := strconv.Atoi(digits) // 0 for an empty string
	return n
}

// as configures a command to run as the servers' user, and returns the command.
func (in *Installation) as(cmd *exec.Cmd) *exec.Cmd {
	cmd.Env = daemon.Environment([]string{"PG", "LC_", "LANG", "LD_PRELOAD="}, "LC_ALL=C", "TZ=UTC")
	in.runs.run(cmd)
	return cmd
}

// The superuser, which can't log in with a password, and the database.
const (
	superuser = "postgres"
	database  = "postgres"
)

// initPrefix begins the name of the directory in which an empty cluster is made.
const initPrefix = "lockfault-initdb-"

// makeTemplate makes the empty cluster in a directory, unless it exists. WAL segments are small,
// because a server has several and fills each with zeroes.
func (in *Installation) makeTemplate(ctx context.Context, cache string) (_ string, err error) {
	args := []string{"--username", superuser, "--auth", "reject", "--encoding", "UTF8", "--locale", "C", "--wal-segsize", "1", "--no-sync", "--no-instructions"}
	sum := sha256.Sum256([]byte(strings.Join(append(args, in.Dir, in.Version), "\x00")))
	template := filepath.Join(cache, "postgres-"+hex.EncodeToString(sum[:8]))
	if _, err := os.Stat(template); err == nil {
		return template, nil
	}
	// Use a directory that the servers' user can write to; other users must not access the cache.
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
			return template, nil // another process made the same
		}
		return "", err
	}
	return template, nil
}

// clone copies the empty cluster to a server's data directory, which this process still owns.
func (in *Installation) clone(dir string) error {
	if err := os.CopyFS(dir, os.DirFS(in.template)); err != nil {
		return err
	}
	return os.Chmod(dir, 0o700)
}
