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

// CanMoveClocks returns nil if daemons can have clocks of their own, and else an error that wraps
// [real.ErrNoClock] and says why. It blocks while the library that moves them is compiled for the first time.
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

// shim returns the library that moves a clock, which stands in the host's directory: the cache is nobody else's business,
// and some daemons are another user's.
func (h *Host) shim(ctx context.Context) (string, error) {
	built, err := clock.Library(ctx, h.options.CC, h.Dir())
	if err != nil {
		return "", err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	library := filepath.Join(h.Dir(), filepath.Base(built))
	// Once it is there it must stay as it is: some process may have it loaded.
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

// OwnClock gives a daemon that was not started yet a clock of its own, and makes the daemon's directory, where its file is: who
// runs as another user must be given that. The error wraps [real.ErrNoClock].
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

// SetClock moves its clock, and those of its children, as [real.ManagedServer] says.
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
