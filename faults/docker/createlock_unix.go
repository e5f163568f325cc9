//go:build unix

package docker

import (
	"context"
	"os"
	"path/filepath"
	"time"

	"github.com/lockfault/lockfault/faults/clock"
	"github.com/lockfault/lockfault/internal/flock"
)

// turn waits until nobody else of this user makes a container for a world that has
// not begun, and returns what lets the next one do so. To make one keeps more than
// a processor busy for half a second: whoever plays meanwhile is late if many do
// that at once. What a script orders doesn't wait for a turn. An error only when
// the context is done.
func turn(ctx context.Context) (over func(), err error) {
	cache, err := clock.CacheDir()
	if err == nil {
		err = os.MkdirAll(cache, 0o700)
	}
	var file *os.File
	if err == nil {
		file, err = os.OpenFile(filepath.Join(cache, "docker-turn"), os.O_CREATE|os.O_RDWR, 0o600)
	}
	if err != nil {
		return func() {}, nil // all at once, then
	}
	for flock.Take(file) != nil {
		select {
		case <-ctx.Done():
			file.Close()
			return nil, context.Cause(ctx)
		case <-time.After(10 * time.Millisecond):
		}
	}
	return func() { file.Close() }, nil
}
