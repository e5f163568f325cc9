package process

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// oldest is the oldest supported major version of Redis.
const oldest = 6

// A BinaryError reports that there is no usable server program. Its text is one line: the problem
// and what to do.
type BinaryError struct {
	// Name is the program as it was requested.
	Name string
	// Reason is what is wrong with the program, and what to do.
	Reason string
}

func (e *BinaryError) Error() string { return e.Name + " " + e.Reason }

const orName = "install it (apt-get install redis-server, brew install redis) or name it with --redis-server FILE"

// A binary is a server program whose version is known.
type binary struct {
	path    string
	version string // "Redis 7.0.15"
}

// find returns the program with that name or path. For an empty name it returns redis-server or, if
// that is not found, valkey-server.
func find(name string) (binary, error) {
	names := []string{"redis-server", "valkey-server"}
	if name != "" {
		names = []string{name}
	}
	for _, name := range names {
		path, err := exec.LookPath(name)
		if errors.Is(err, exec.ErrNotFound) {
			continue
		}
		if err == nil {
			// Links are not resolved: the program checks the name by which it is called.
			path, err = filepath.Abs(path)
		}
		if err != nil {
			return binary{}, &BinaryError{name, fmt.Sprintf("can't be started: %v: %s", reason(err), orName)}
		}
		return examine(name, path)
	}
	return binary{}, &BinaryError{names[0], "is not on PATH: " + orName}
}

// reason returns the innermost error of a chain, which doesn't repeat the file's name.
func reason(err error) error {
	for {
		inner := errors.Unwrap(err)
		if inner == nil {
			return err
		}
		err = inner
	}
}

// versionLine matches the version that redis-server and valkey-server print, such as "Redis server
// v=7.0.15 sha=…".
var versionLine = regexp.MustCompile(`(?m)^(\w+) server v=(\d+)(\.[\w.-]+)?`)

func examine(name, path string) (binary, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, path, "--version")
	cmd.Env = environment()
	cmd.WaitDelay = time.Second
	out, err := cmd.CombinedOutput()
	found := versionLine.FindSubmatch(out)
	if found == nil {
		said := "it prints nothing"
		if line := firstLine(out); line != "" {
			said = fmt.Sprintf("it prints %q", line)
		}
		if ctx.Err() != nil {
			said = "it doesn't end"
		} else if err != nil {
			said += ", " + err.Error()
		}
		return binary{}, &BinaryError{name, fmt.Sprintf("is not a Redis server (asked for its --version, %s): %s", said, orName)}
	}
	version := string(found[1]) + " " + string(found[2]) + string(found[3])
	if major, err := strconv.Atoi(string(found[2])); err != nil || major < oldest {
		return binary{}, &BinaryError{name, fmt.Sprintf("is %s, too old: install version %d or newer, or name another with --redis-server FILE", version, oldest)}
	}
	return binary{path, version}, nil
}

func firstLine(text []byte) string {
	line, _, _ := bytes.Cut(bytes.TrimSpace(text), []byte("\n"))
	const limit = 80
	if len(line) > limit {
		line = append(line[:limit:limit], "…"...)
	}
	return strings.ToValidUTF8(strings.TrimSpace(string(line)), "\uFFFD")
}
