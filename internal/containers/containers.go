// Package containers provides the container engine of the world docker. The package is meant for
// main functions; package worlds defines [worlds.Containers].
package containers

import (
	"context"
	"io"
	"os/exec"

	"github.com/lockfault/lockfault/faults/docker"
	"github.com/lockfault/lockfault/internal/worlds"
)

// Docker is the engine that package docker finds.
type Docker struct{}

var _ worlds.Containers = Docker{}

// Prepare implements [worlds.Containers].
func (Docker) Prepare(ctx context.Context, image string) error { return docker.Prepare(ctx, image) }

// Host implements [worlds.Containers].
func (Docker) Host(ctx context.Context, image, dir string, watchman func() *exec.Cmd) (worlds.Host, error) {
	return docker.New(ctx, docker.Options{Image: image, Dir: dir, Watchman: watchman})
}

// Watch implements [worlds.Containers].
func (Docker) Watch(in io.Reader) error { return docker.Watch(in) }
