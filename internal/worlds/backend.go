package worlds

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"

	"github.com/lockfault/lockfault/faults"
	"github.com/lockfault/lockfault/faults/process"
	"github.com/lockfault/lockfault/faults/real"
	"github.com/lockfault/lockfault/internal/harness"
	"github.com/lockfault/lockfault/scenarios"
)

// backend implements one kind of world at a place.
type backend interface {
	// check implements [Place.Check].
	check(context.Context) error
	// takes reports whether a cell can run there, and the reason if not.
	takes(harness.Cell) (ok bool, why string)
	// host returns the host of the servers.
	host(context.Context, Programs) (Host, error)
}

// Optional methods of a backend.
type (
	sweeper interface{ sweep() }                      // [Place.Sweep]
	leaver  interface{ leave(context.Context) error } // [Place.Leave]
)

// Host manages the servers of a world.
type Host interface {
	real.Host
	// CopyLogs copies the servers' logs into a directory.
	CopyLogs(dir string) error
}

// Programs holds the commands of the processes that a place starts.
type Programs struct {
	// Client returns the command of a client's process: a program that calls client.Serve on its
	// standard streams.
	Client func() *exec.Cmd
	// Watchman returns the command of a process that removes Docker's containers if this process is
	// killed: a program that calls Containers.Watch on its standard input. If Watchman is nil, the
	// containers remain.
	Watchman func() *exec.Cmd
	// Containers is the engine of the world [Docker]; nil if the program has none.
	Containers Containers
	// Services are the services other than Redis.
	Services []Service
}

// Containers is a container engine, which runs the servers of the world [Docker].
type Containers interface {
	// Prepare checks that the engine answers, and pulls the image if the engine does not have it.
	// Prepare blocks until both are known.
	Prepare(ctx context.Context, image string) error
	// Host returns a host that runs servers of an image. Temporary directories are made in dir;
	// empty means the system's default. The host starts the command of watchman, if not nil, which
	// must call Watch.
	Host(ctx context.Context, image, dir string, watchman func() *exec.Cmd) (Host, error)
	// Watch runs a watchman: it reads in to its end, and then removes the containers of the process
	// that wrote to it.
	Watch(in io.Reader) error
}

// kind returns the backend of the place's world. engine may be nil in other worlds than Docker, and
// if the backend runs no servers.
func (p Place) kind(engine Containers) (backend, error) {
	switch p.World {
	case Process:
		return processes{p}, nil
	case Docker:
		return containers{p, engine}, nil
	case External:
		return externalPlace{p}, nil
	}
	return nil, fmt.Errorf("worlds: there are no servers in a world %q", p.World)
}

// processes implements the world [Process].
type processes struct{ Place }

func (p processes) takes(cell harness.Cell) (ok bool, why string) { return p.sentinelsTake(cell) }

func (p processes) check(context.Context) error {
	h, err := process.New(p.options())
	if err != nil {
		return err
	}
	return h.Close()
}

func (p processes) host(context.Context, Programs) (Host, error) { return process.New(p.options()) }

func (p processes) options() process.Options {
	return process.Options{Binary: p.RedisServer, Dir: p.Temp}
}

func (p processes) sweep() { process.Sweep(p.Temp) }

// containers implements the world [Docker].
type containers struct {
	Place
	engine Containers
}

// DefaultImage is the default image of the world Docker.
const DefaultImage = "redis:7-alpine"

var errNoContainers = errors.New("worlds: this program was built without a container engine")

func (p containers) image() string { return cmp.Or(p.Image, DefaultImage) }

func (p containers) takes(cell harness.Cell) (ok bool, why string) { return p.sentinelsTake(cell) }

func (p containers) check(ctx context.Context) error {
	if p.engine == nil {
		return errNoContainers
	}
	return p.engine.Prepare(ctx, p.image())
}

func (p containers) host(ctx context.Context, programs Programs) (Host, error) {
	if p.engine == nil {
		return nil, errNoContainers
	}
	return p.engine.Host(ctx, p.image(), p.Temp, programs.Watchman)
}

// sentinelsTake reports whether a cell can run with the place's sentinels, and the reason if not.
func (p Place) sentinelsTake(cell harness.Cell) (ok bool, why string) {
	switch {
	case !p.Sentinel:
		return true, ""
	case !has[faults.Failover](cell.Script):
		return false, "there is no failover for sentinels to do"
	case cell.Strategy.Program != nil && !cell.Strategy.Program.Full:
		return false, fmt.Sprintf("%s is a program, which hears of sentinels only in the full protocol, --subject-protocol full", cell.Strategy.Name)
	case cell.Strategy.Nodes > 1:
		return false, fmt.Sprintf("sentinels watch one node, and %s runs on %d", cell.Strategy.Name, cell.Strategy.Nodes)
	}
	return true, ""
}

// has reports whether a script has a fault of the given type.
func has[F faults.Fault](script *scenarios.Script) bool { return len(injected[F](script)) > 0 }

// injected returns the faults of the given type in a script.
func injected[F faults.Fault](script *scenarios.Script) (list []F) {
	for _, step := range script.Steps {
		if inject, ok := step.Do.(scenarios.Inject); ok {
			if f, ok := inject.Fault.(F); ok {
				list = append(list, f)
			}
		}
	}
	return list
}
