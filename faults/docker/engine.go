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

// An EngineError says that no engine answers.
type EngineError struct {
	// Addr is where it was looked for.
	Addr string
	// Err is why there was no answer.
	Err error
}

// Error is one line that says what to do.
func (e *EngineError) Error() string {
	return fmt.Sprintf("docker: no Docker engine answers at %s: start it, or play in --world process (%v)", e.Addr, oneLine(e.Err))
}

// Unwrap returns Err.
func (e *EngineError) Unwrap() error { return e.Err }

// An ImageError says that an image isn't there and can't be pulled.
type ImageError struct {
	Image string
	// Err is what the engine says.
	Err error
}

// Error is one line that says what to do.
func (e *ImageError) Error() string {
	return fmt.Sprintf("docker: the image %s is not here and can't be pulled: name another with --image; where no registry can be reached, make image builds %s (%v)",
		e.Image, LocalImage, oneLine(e.Err))
}

// Unwrap returns Err.
func (e *ImageError) Unwrap() error { return e.Err }

// answerLimit is how long an engine may take to say that it is there.
const answerLimit = 10 * time.Second

// connect returns a client of the engine: the one that DOCKER_HOST names, or
// the one that testcontainers finds.
func connect(ctx context.Context) (*testcontainers.DockerClient, error) {
	settle()
	// Testcontainers keeps the first answer for the life of this process: a
	// caller that gave up must not spoil it for the next.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), answerLimit)
	defer cancel()
	addr := os.Getenv(client.EnvOverrideHost)
	if addr != "" {
		// Testcontainers would take another if this one doesn't answer.
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

// ping asks the engine that the environment names whether it is there.
func ping(ctx context.Context) error {
	c, err := client.New(client.FromEnv)
	if err != nil {
		return err
	}
	_, err = c.Ping(ctx, client.PingOptions{})
	return errors.Join(err, c.Close())
}

// settle makes testcontainers silent and keeps it from starting a container of
// its own that cleans up, whose image must be pulled. Both hold for the whole
// process, there is no other way; the latter is read once, from the
// environment, which is as before afterwards.
var settle = sync.OnceFunc(func() {
	log.SetDefault(log.NewNoopLogger())
	const name = "TESTCONTAINERS_RYUK_DISABLED"
	before, was := os.LookupEnv(name)
	_ = os.Setenv(name, "true") // the name is a good one
	testcontainers.GenericLabels()
	if was {
		_ = os.Setenv(name, before)
	} else {
		_ = os.Unsetenv(name)
	}
})

// Prepare makes sure that an engine answers and has the image, DefaultImage if
// empty, as [New] does: who plays many cells learns here, once, why none can be
// played, and has the time for a pull that a cell hasn't.
func Prepare(ctx context.Context, image string) error {
	if image == "" {
		image = DefaultImage
	}
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

// pullLimit is how long an image may take to come.
const pullLimit = 5 * time.Minute

// fetch pulls the image if it isn't there.
func fetch(ctx context.Context, engine *testcontainers.DockerClient, image string) error {
	_, err := engine.ImageInspect(ctx, image)
	if err == nil {
		return nil
	}
	if !errdefs.IsNotFound(err) {
		return &ImageError{image, err}
	}
	ctx, cancel := context.WithTimeout(ctx, pullLimit)
	defer cancel()
	provider, err := newProvider()
	if err != nil {
		return &ImageError{image, err}
	}
	if err := provider.PullImage(ctx, image); err != nil {
		return &ImageError{image, err}
	}
	// The end of a pull says nothing of its success.
	if _, err := engine.ImageInspect(ctx, image); err != nil {
		return &ImageError{image, err}
	}
	return nil
}

func newProvider() (*testcontainers.DockerProvider, error) {
	return testcontainers.NewDockerProvider(testcontainers.WithLogger(log.NewNoopLogger()))
}
