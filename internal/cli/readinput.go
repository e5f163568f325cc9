package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"

	"github.com/lockfault/lockfault/scenarios"
)

// readText reads a script, or what else it is called, "-" from standard input: no more
// of it than tells that it is too large, and no longer than until ctx is done, for who
// writes a pipe may take his time. The error is how the command ends.
func readText(ctx context.Context, stdin io.Reader, what, file string) ([]byte, error) {
	r, done, err := openInterruptible(ctx, stdin, file)
	if err != nil {
		return nil, usage("can't read the %s: %w", what, pathErrorText(err))
	}
	defer done()
	source, err := io.ReadAll(io.LimitReader(r, scenarios.MaxFile+1))
	switch {
	case err != nil && ctx.Err() != nil:
		return nil, &statusError{ExitInterrupted, fmt.Errorf("interrupted before %s was read", file)}
	case err != nil:
		return nil, usage("can't read the %s: %w", what, pathErrorText(err))
	}
	return source, nil
}

// openInterruptible returns what there is to read in a file, or for "-" on standard input,
// whose end need not come, nor its beginning: reads end when ctx is done. A file
// that lies on a disk is returned as it is, and can be read twice. A pipe or a device is refused
// unless it is one of the process's own descriptors, as a shell names the output of <(COMMAND).
// Call done when nothing more is wanted.
func openInterruptible(ctx context.Context, stdin io.Reader, file string) (r io.Reader, done func(), err error) {
	if f, ok := stdin.(*os.File); file == "-" && ok && isRegular(f.Stat()) {
		return f, func() {}, nil
	}
	if info, err := os.Stat(file); file != "-" && (err != nil || info.Mode().IsRegular() || info.IsDir()) {
		f, err := os.Open(file)
		return f, func() { f.Close() }, err
	}
	if file != "-" && !isDescriptor(file) {
		return nil, nil, &fs.PathError{Op: "read", Path: file, Err: errors.New("not a regular file; - stands for standard input")}
	}
	out, in := io.Pipe()
	stop := context.AfterFunc(ctx, func() { in.CloseWithError(context.Cause(ctx)) })
	go func() { // which stays in a read that never ends, and ends with the process
		defer stop()
		if file != "-" {
			f, err := os.Open(file)
			if err != nil {
				in.CloseWithError(err)
				return
			}
			defer f.Close()
			stdin = f
		}
		_, err := io.Copy(in, stdin)
		in.CloseWithError(err)
	}()
	return out, func() { out.Close() }, nil
}

// isDescriptor reports whether a path names an open descriptor of the process that reads it.
func isDescriptor(file string) bool {
	return file == "/dev/stdin" || strings.HasPrefix(file, "/dev/fd/") || strings.HasPrefix(file, "/proc/self/fd/")
}

func isRegular(info os.FileInfo, err error) bool { return err == nil && info.Mode().IsRegular() }
