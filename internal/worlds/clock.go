package worlds

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/lockfault/lockfault/faults/clock"
	"github.com/lockfault/lockfault/faults/real"
	"github.com/lockfault/lockfault/internal/tempdir"
)

// clocks holds the clocks of one world's programs. A program reads the system's time, so the
// library that moves the servers' clocks is loaded into programs, too. A nil value has no clocks.
type clocks struct {
	dir     *tempdir.Dir
	library string
	files   map[*exec.Cmd]*clientClock
}

// clientClock is the clock of one process.
type clientClock struct{ file *clock.File }

// clocksPrefix is the prefix of the names of the clocks' directories.
const clocksPrefix = "lockfault-clocks-"

// newClocks returns clocks for programs whose clocks a script moves. The error wraps
// [real.ErrNoClock].
func newClocks(ctx context.Context, temp string) (*clocks, error) {
	dir, err := tempdir.Make(temp, clocksPrefix)
	if err != nil {
		return nil, err
	}
	c := &clocks{dir: dir, files: map[*exec.Cmd]*clientClock{}}
	if c.library, err = clock.Library(ctx, "", dir.Path()); err != nil {
		return nil, errors.Join(fmt.Errorf("%w: %w", real.ErrNoClock, err), c.close())
	}
	return c, nil
}

// give assigns a clock to a process before its start. If the clock cannot be made, the process
// starts without a clock, and [clocks.of] returns a clock that cannot be set.
func (c *clocks) give(cmd *exec.Cmd) {
	if c == nil {
		return
	}
	file, err := clock.Create(filepath.Join(c.dir.Path(), fmt.Sprintf("clock-%d", len(c.files)+1)))
	if err != nil {
		return
	}
	c.files[cmd] = &clientClock{file}
	library := c.library
	if other := os.Getenv("LD_PRELOAD"); other != "" {
		library += ":" + other
	}
	cmd.Env = append(cmd.Environ(), clock.Env(library, file.Path())...)
}

// of returns the clock of a process.
func (c *clocks) of(p *real.Process) *clientClock {
	if c == nil {
		return nil
	}
	if own := c.files[p.Command]; own != nil {
		return own
	}
	return &clientClock{}
}

// set sets the clock's offset from true time.
func (c *clientClock) set(offset time.Duration) error {
	if c.file == nil {
		return fmt.Errorf("%w: the file for it can't be made", real.ErrNoClock)
	}
	return c.file.Set(offset.Round(time.Microsecond), 1)
}

// loaded returns an error if the program, which must have answered, does not use the clock.
func (c *clientClock) loaded(words []string) error {
	if c == nil || c.file != nil && c.file.Loaded() {
		return nil
	}
	return fmt.Errorf("%w: %s doesn't load the library that moves it: only a program that is linked dynamically does", real.ErrNoClock, strings.Join(words, " "))
}

// close removes the clocks. The processes must have ended.
func (c *clocks) close() error {
	if c == nil {
		return nil
	}
	var errs []error
	for _, own := range c.files {
		errs = append(errs, own.file.Close())
	}
	return errors.Join(append(errs, c.dir.Remove())...)
}
