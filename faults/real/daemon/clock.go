package daemon

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/lockfault/lockfault/faults/clock"
	"github.com/lockfault/lockfault/faults/real"
)

// CanMoveClocks returns nil if daemons can have their own clocks, and otherwise an error that wraps
// [real.ErrNoClock] and gives the reason. It blocks while the library that moves clocks is compiled
// for the first time.
func (h *Host) CanMoveClocks(ctx context.Context) error {
	ctx, leave, err := h.Enter(ctx)
	if err != nil {
		return fmt.Errorf("%s: %w", h.options.Name, err)
	}
	defer leave()
	if _, err := h.shim(ctx); err != nil {
		return fmt.Errorf("%s: %w: %w", h.options.Name, real.ErrNoClock, err)
	}
	return nil
}

// shim returns the path of the library that moves a clock. The library is copied to the host's
// directory, because some daemons run as another user, which must not read the cache.
func (h *Host) shim(ctx context.Context) (string, error) {
	built, err := clock.Library(ctx, h.options.CC, h.Dir())
	if err != nil {
		return "", err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	library := filepath.Join(h.Dir(), filepath.Base(built))
	// An existing copy must stay unchanged: a process may have loaded it.
	if _, err := os.Stat(library); errors.Is(err, os.ErrNotExist) {
		text, err := os.ReadFile(built)
		if err != nil {
			return "", err
		}
		if err := os.WriteFile(library, text, 0o600); err != nil {
			return "", errors.Join(err, os.Remove(library))
		}
	}
	return library, os.Chmod(library, 0o755)
}

// OwnClock gives a daemon that was not started yet its own clock, and makes the daemon's directory,
// which holds the clock's file. If the daemon runs as another user, the caller must give the
// directory to that user. The error wraps [real.ErrNoClock].
func (d *Daemon) OwnClock(ctx context.Context) (err error) {
	if err = os.MkdirAll(d.Dir(), 0o700); err == nil {
		d.shim, err = d.host.shim(ctx)
	}
	if err == nil {
		d.clock, err = clock.Create(filepath.Join(d.Dir(), "clock"))
	}
	if err != nil {
		return fmt.Errorf("%w: %w", real.ErrNoClock, err)
	}
	return nil
}

// SetClock sets the clock of the daemon and of its children, as [real.ManagedServer] specifies.
func (d *Daemon) SetClock(offset time.Duration, rate float64) error {
	err := fmt.Errorf("%w: it was started without one of its own", real.ErrNoClock)
	if d.clock != nil {
		err = d.clock.Set(offset, rate)
	}
	if err != nil {
		return fmt.Errorf("%s: set the clock of %s: %w", d.host.options.Name, d.name, err)
	}
	return nil
}
