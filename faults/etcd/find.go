package etcd

import (
	"bytes"
	"context"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/lockfault/lockfault/faults/real/daemon"
	"github.com/lockfault/lockfault/internal/tempdir"
)

// tool holds the module that the server is built from, with all dependencies pinned. Its files have
// other names, because files of another module can't be embedded.
//
//go:embed tool/mod.txt tool/sum.txt tool/main.txt
var tool embed.FS

// Find returns the server program: etcd from PATH, or one built with Go, once, into lockfault's
// directory in the user's cache. It blocks until the build is done, some minutes for the first
// time. The error is a *[daemon.MissingError].
func Find(ctx context.Context) (string, error) {
	if path, err := exec.LookPath("etcd"); err == nil {
		return path, nil
	}
	cache, err := os.UserCacheDir()
	if err == nil {
		var path string
		if path, err = build(ctx, filepath.Join(cache, "lockfault")); err == nil {
			return path, nil
		}
	}
	return "", &daemon.MissingError{What: "etcd on PATH, and none could be built", Why: err,
		Cure: "install it (apt-get install etcd-server, brew install etcd), or Go, which builds it"}
}

// build builds the server into a directory, unless the program exists.
func build(ctx context.Context, dir string) (string, error) {
	sum := sha256.New()
	fmt.Fprintln(sum, runtime.GOOS, runtime.GOARCH)
	files := map[string][]byte{}
	for name, in := range map[string]string{"go.mod": "tool/mod.txt", "go.sum": "tool/sum.txt", "main.go": "tool/main.txt"} {
		text, err := tool.ReadFile(in)
		if err != nil {
			return "", err
		}
		files[name] = text
	}
	sum.Write(files["go.sum"])
	sum.Write(files["main.go"])
	program := filepath.Join(dir, "etcd-"+hex.EncodeToString(sum.Sum(nil)[:8]))
	if _, err := os.Stat(program); err == nil {
		return program, nil
	}
	goProgram, err := exec.LookPath("go")
	if err != nil {
		return "", errors.New("there is no Go either")
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", err
	}
	place, err := tempdir.Make(dir, "building-etcd-")
	if err != nil {
		return "", err
	}
	defer place.Remove() // the next build removes what is left
	work := place.Path()
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(work, name), text, 0o600); err != nil {
			return "", err
		}
	}
	made, temp := filepath.Join(work, "etcd"), filepath.Join(work, "temp")
	if err := os.Mkdir(temp, 0o700); err != nil {
		return "", err
	}
	cmd := exec.CommandContext(ctx, goProgram, "build", "-trimpath", "-o", made, ".")
	cmd.Dir = work
	// Go ignores a go.mod in TMPDIR itself.
	cmd.Env = append(os.Environ(), "TMPDIR="+temp, "GOWORK=off", "GOFLAGS=-mod=mod", "CGO_ENABLED=0")
	var said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &said, &said
	if err := cmd.Run(); err != nil {
		lines := strings.Split(strings.TrimSpace(said.String()), "\n")
		return "", fmt.Errorf("go build: %w: %s", err, lines[len(lines)-1])
	}
	return program, os.Rename(made, program) // a concurrent build makes the same program
}
