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

// turn waits until no other process of this user creates a container for a world that has not
// begun; over ends the turn. Creating a container keeps more than a processor busy for 0.5 s: many
// at once make every running world late. Starts that a script orders don't wait for a turn. turn
// returns an error only if the context is done.
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
		return func() {}, nil // without the file, turns are not taken
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
