package kit

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

// ReadText reads a small text file such as a script, or standard input for "-". ReadText reads at
// most one byte more than scenarios.MaxFile, enough for the parser to reject the text. ReadText
// returns early when ctx is done, because the writer of a pipe may be slow. what names the text in
// errors, which carry an exit status.
func ReadText(ctx context.Context, stdin io.Reader, what, file string) ([]byte, error) {
	r, done, err := OpenInterruptible(ctx, stdin, file)
	if err != nil {
		return nil, Usage("can't read the %s: %w", what, PathErrorText(err))
	}
	defer done()
	source, err := io.ReadAll(io.LimitReader(r, scenarios.MaxFile+1))
	switch {
	case err != nil && ctx.Err() != nil:
		return nil, Exit(ExitInterrupted, fmt.Errorf("interrupted before %s was read", file))
	case err != nil:
		return nil, Usage("can't read the %s: %w", what, PathErrorText(err))
	}
	return source, nil
}

// OpenInterruptible opens a file, or standard input for "-", for reads that end when ctx is done.
// Regular files are returned directly, as an *os.File that can be read twice. Pipes and devices are
// refused unless they are descriptors of this process, as in the shell's <(COMMAND). The caller
// must call done after reading.
func OpenInterruptible(ctx context.Context, stdin io.Reader, file string) (r io.Reader, done func(), err error) {
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
	go func() { // may block in a read until the process exits
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

// isDescriptor reports whether a path names an open descriptor of this process.
func isDescriptor(file string) bool {
	return file == "/dev/stdin" || strings.HasPrefix(file, "/dev/fd/") || strings.HasPrefix(file, "/proc/self/fd/")
}

func isRegular(info os.FileInfo, err error) bool { return err == nil && info.Mode().IsRegular() }
