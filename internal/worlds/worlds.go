// Package worlds makes the worlds of real servers for cells: redis-server processes, containers, or
// the user's own Redis. Clients are processes in these worlds, and time is real.
//
// A [Place] selects the world and its resources, and can be sent to another process. The [Env] of a
// Place is a [harness.Place]: it opens a world for each cell, and decides whether the machine was
// fast enough for a verdict. Packages that run only in virtual time must not import worlds, because
// it links toxiproxy.
package worlds

import (
	"context"
	"fmt"
	"time"

	"github.com/lockfault/lockfault/internal/harness"
	"github.com/lockfault/lockfault/internal/proc"
	"github.com/lockfault/lockfault/internal/tempdir"
)

// Names of the worlds.
const (
	Sim      = harness.Sim // virtual time, in this process; needs no Place
	Process  = "process"   // redis-server processes on this machine
	Docker   = "docker"    // containers
	External = "external"  // the user's own Redis
)

// Names returns the names of all worlds.
func Names() []string { return []string{Sim, Process, Docker, External} }

// Place describes a world and its resources.
type Place struct {
	// World is one of [Names]; empty means Sim.
	World string
	// RedisServer is the server program for Process; empty means the program on PATH.
	RedisServer string
	// Image is the image for Docker; empty means [DefaultImage].
	Image string
	// Redis holds the URLs of the nodes for External, in their order.
	Redis []string
	// Run identifies the run for External, see [NewRun]. A caller that sets Run must call
	// [Place.Leave] after the run. If Run is empty, each cell removes its own keys, for which it
	// scans the names of all keys on the server.
	Run string
	// Sentinel makes sentinels do the failovers.
	Sentinel bool
	// Temp is the parent of temporary directories; empty means the system's default.
	Temp string
	// Missing gives the reasons why the servers of services cannot be started here. Cells on these
	// services do not apply.
	Missing map[string]string
	// Logs is a directory for the server logs of cells that end in an error; empty means that the
	// logs are not kept.
	Logs string
}

// Real reports whether the time of the world is real.
func (p Place) Real() bool { return p.World != Sim && p.World != "" }

// Default leases in worlds of real time. A container engine takes a while to stop or restart a
// container; sentinels take a second or two. Scripts leave a tenth of a lease for such operations,
// and an engine may use that time without counting as late.
const (
	TTL         = time.Second
	TTLDocker   = 4 * time.Second
	TTLSentinel = 10 * time.Second

	takesDocker  = TTLDocker / 10
	takesProcess = TTL / 50
	takesService = time.Second // until a restarted member belongs to its cluster again
)

// takes returns the usual time to end, stop or start a server.
func (p Place) takes() time.Duration {
	switch p.World {
	case Docker:
		return takesDocker
	case Process:
		return takesProcess
	}
	return 0
}

// Lease returns the default lease in real time.
func (p Place) Lease() time.Duration {
	switch {
	case p.Sentinel:
		return TTLSentinel
	case p.World == Docker:
		return TTLDocker
	}
	return TTL
}

// Crowd returns the number of cells that one processor can run at the same time. In real time a
// cell mostly waits.
func (p Place) Crowd() int {
	switch {
	case !p.Real():
		return 1
	case p.World == Process && !p.Sentinel:
		return 6
	}
	return 4
}

// Check reports whether cells can run at this place: whether the server program, the container
// engine, or the user's server is available. Check blocks until that is known. The error names, in
// one line, the missing part and the remedy. Only the world Docker needs engine, which may be nil
// elsewhere.
func (p Place) Check(ctx context.Context, engine Containers) error {
	if !p.Real() {
		return nil
	}
	k, err := p.kind(engine)
	if err != nil {
		return err
	}
	return k.check(ctx)
}

// Sweep removes the remains of worlds whose processes have died. Sweep spares other worlds and
// ignores errors.
func (p Place) Sweep() {
	if p.Real() {
		tempdir.Sweep(p.Temp, clocksPrefix)
	}
	if k, err := p.kind(nil); err == nil {
		if k, ok := k.(sweeper); ok {
			k.sweep()
		}
	}
}

// Leave removes the remains of the run named Run at a place of the user's own, after all of its
// cells have ended. Leave has no effect in other worlds, or if cells remove their own keys. Leave
// blocks until the removal is done or ctx is done.
func (p Place) Leave(ctx context.Context) error {
	if k, err := p.kind(nil); err == nil {
		if k, ok := k.(leaver); ok {
			return k.leave(ctx)
		}
	}
	return nil
}

// CanWatch returns nil if strategies that are programs can run on this system, which must permit
// measuring the programs' delays from outside.
func CanWatch() error {
	if err := proc.CanWatch(); err != nil {
		return fmt.Errorf("programs can't be clients here: %w", err)
	}
	return nil
}
