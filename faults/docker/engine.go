package docker

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/containerd/errdefs"
	"github.com/moby/moby/client"
	"github.com/testcontainers/testcontainers-go"
	"github.com/testcontainers/testcontainers-go/log"
)

// An EngineError reports that no container engine answers.
type EngineError struct {
	// Addr is the engine's address that was tried.
	Addr string
	// Err is the cause.
	Err error
}

// Error returns one line: the problem and what to do.
func (e *EngineError) Error() string {
	return fmt.Sprintf("docker: no Docker engine answers at %s: start it, or play in --world process (%v)", e.Addr, oneLine(e.Err))
}

// Unwrap returns Err.
func (e *EngineError) Unwrap() error { return e.Err }

// An ImageError reports that an image is missing and can't be pulled.
type ImageError struct {
	Image string
	// Err is the engine's error.
	Err error
}

// Error returns one line: the problem and what to do.
func (e *ImageError) Error() string {
	return fmt.Sprintf("docker: the image %s is not here and can't be pulled: name another with --image; where no registry can be reached, make image builds %s (%v)",
		e.Image, LocalImage, oneLine(e.Err))
}

// Unwrap returns Err.
func (e *ImageError) Unwrap() error { return e.Err }

// answerLimit is the maximum time for an engine to answer.
const answerLimit = 10 * time.Second

// connect returns a client of the engine: the one that DOCKER_HOST names, or the one that
// testcontainers finds.
func connect(ctx context.Context) (*testcontainers.DockerClient, error) {
	settle()
	// Testcontainers keeps the first result for the life of this process: a canceled caller must
	// not spoil it for later callers.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), answerLimit)
	defer cancel()
	addr := os.Getenv(client.EnvOverrideHost)
	if addr != "" {
		// Testcontainers would use another engine if this one doesn't answer.
		if err := ping(ctx); err != nil {
			return nil, &EngineError{addr, err}
		}
	} else {
		addr = client.DefaultDockerHost
	}
	engine, err := testcontainers.NewDockerClientWithOpts(ctx)
	if err == nil {
		addr = engine.DaemonHost()
		_, err = engine.Ping(ctx, client.PingOptions{})
	}
	if err != nil {
		return nil, &EngineError{addr, err}
	}
	return engine, nil
}

// ping checks whether the engine in the environment answers.
func ping(ctx context.Context) error {
	c, err := client.New(client.FromEnv)
	if err != nil {
		return err
	}
	_, err = c.Ping(ctx, client.PingOptions{})
	return errors.Join(err, c.Close())
}

// settle disables testcontainers' log and its cleanup container, whose image must be pulled. Both
// settings are global to the process. Testcontainers reads the second one once from the
// environment; settle restores the environment afterwards.
var settle = sync.OnceFunc(func() {
	log.SetDefault(log.NewNoopLogger())
	const name = "TESTCONTAINERS_RYUK_DISABLED"
	before, was := os.LookupEnv(name)
	_ = os.Setenv(name, "true") // fails only for an invalid name
	testcontainers.GenericLabels()
	if was {
		_ = os.Setenv(name, before)
	} else {
		_ = os.Unsetenv(name)
	}
})

// Prepare checks, as [New] does, that an engine answers and has the image. A caller
// that runs many cells gets one error before the first cell, and more time for a pull than a cell
// has.
func Prepare(ctx context.Context, image string) error {
	engine, err := prepare(ctx, image)
	if err != nil {
		return err
	}
	return engine.Close()
}

func prepare(ctx context.Context, image string) (*testcontainers.DockerClient, error) {
	engine, err := connect(ctx)
	if err != nil {
		return nil, err
	}
	if err := fetch(ctx, engine, image); err != nil {
		return nil, errors.Join(err, engine.Close())
	}
	return engine, nil
}

// pullLimit is the maximum time to pull an image.
const pullLimit = 5 * time.Minute

// fetch pulls the image if it is missing.
func fetch(ctx context.Context, engine *testcontainers.DockerClient, image string) error {
	_, err := engine.ImageInspect(ctx, image)
	if errdefs.IsNotFound(err) {
		if err = pull(ctx, image); err == nil {
			_, err = engine.ImageInspect(ctx, image) // the end of a pull doesn't prove its success
		}
	}
	if err != nil {
		return &ImageError{image, err}
	}
	return nil
}

func pull(ctx context.Context, image string) error {
	ctx, cancel := context.WithTimeout(ctx, pullLimit)
	defer cancel()
	provider, err := newProvider()
	if err != nil {
		return err
	}
	return provider.PullImage(ctx, image)
}

func newProvider() (*testcontainers.DockerProvider, error) {
	return testcontainers.NewDockerProvider(testcontainers.WithLogger(log.NewNoopLogger()))
}
