package reports

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"

	"github.com/lockfault/lockfault/internal/atomicdir"
	"github.com/lockfault/lockfault/internal/below"
	"github.com/lockfault/lockfault/internal/flock"
	"github.com/lockfault/lockfault/internal/input"
)

// Rebuild rewrites report.md and index.html from the results and histories in a directory. Rebuild
// stops with an error when the context ends.
func Rebuild(ctx context.Context, dir string) error {
	of := Source{Results: filepath.Join(dir, ResultsFile), Err: ctx.Err}
	// Without its history, a story that the old page may have would get lost.
	if _, err := of.scan(func(c Cell) error {
		if c.History == "" {
			return nil
		}
		f, err := openBelow(dir, c.History, input.History)
		if err != nil {
			return err
		}
		return f.Close()
	}); err != nil {
		return err
	}
	in, err := settled(dir)
	if err == nil {
		defer in.Close()
		err = checkOurs(in)
	}
	if err != nil {
		return fmt.Errorf("reports: %w", err)
	}
	atomicdir.Sweep(in)
	return drawAll(in, ".", ctx.Err)
}

// settled opens a report's directory. settled first completes a replacement that a killed run has
// left unfinished.
func settled(dir string) (*below.Dir, error) {
	in, err := below.Open(dir)
	if err != nil || !placeIn(in).Unsettled() {
		return in, err
	}
	r, err := take(dir)
	if errors.Is(err, flock.ErrTaken) {
		err = fmt.Errorf("a run is writing to %s: wait for its end", dir)
	}
	if err != nil {
		return nil, errors.Join(err, in.Close())
	}
	r.Leave()
	return in, nil
}

// drawAll writes the Markdown and HTML files of the results in a directory below in. drawAll stops
// with the error of until, which may be nil.
func drawAll(in *below.Dir, dir string, until func() error) error {
	of := Source{Results: in.Join(filepath.Join(dir, ResultsFile)), Err: until}
	if err := atomicdir.InUnsynced(in, filepath.Join(dir, MarkdownFile), func(w io.Writer) error { return Markdown(w, of) }); err != nil {
		return err
	}
	return atomicdir.InUnsynced(in, filepath.Join(dir, HTMLFile), func(w io.Writer) error { return HTML(w, of) })
}
