// Package worlds makes the worlds of real servers that cells can be played in:
// redis-server processes, containers, or a Redis that the user has. Clients are
// processes there, and time is real.
//
// A [Place] says in which world and with what, and can be sent to another
// process; the [Env] made of it is a [harness.Place], which opens a world for
// each cell and judges what the machine's own lateness leaves of it. Packages
// that play in virtual time alone don't import this one: it links containers and
// toxiproxy.
package worlds

import (
	"context"
	"fmt"
	"time"

	"github.com/lockfault/lockfault/internal/harness"
	"github.com/lockfault/lockfault/internal/proc"
	"github.com/lockfault/lockfault/internal/tempdir"
)

// The worlds that cells can be played in.
const (
	Sim      = harness.Sim // virtual time, in this process; needs no Place
	Process  = "process"   // redis-server processes of this machine
	Docker   = "docker"    // containers
	External = "external"  // a Redis that the user has
)

// Names returns the names of all worlds.
func Names() []string { return []string{Sim, Process, Docker, External} }

// A Place says where to play, and with what.
type Place struct {
	// World is one of [Names]; empty means Sim.
	World string
	// RedisServer is the server program for Process; empty means the one on
	// PATH.
	RedisServer string
	// Image is the image for Docker; empty means [DefaultImage].
	Image string
	// Redis are the URLs of the nodes for External, in their order.
	Redis []string
	// Run names the run for External, see [NewRun]: whoever sets it calls
	// [Place.Leave] when the run is over. Empty means that each cell cleans
	// up after itself, for which it looks at the names of all keys there.
	Run string
	// Sentinel leaves failovers to sentinels.
	Sentinel bool
	// Temp is where temporary directories are made; empty means the
	// system's place.
	Temp string
	// Missing says of services whose servers can't be started here why: cells on them don't apply.
	Missing map[string]string
	// Logs is a directory for what servers logged in a cell that ended in an
	// error; empty means that nobody wants that.
	Logs string
}

// Real reports whether time is real there.
func (p Place) Real() bool { return p.World != Sim && p.World != "" }

// The lease in worlds of real time, unless a cell says otherwise. An engine takes
// a while to end a container or start it again; sentinels take a second or two.
// Scripts leave a tenth of a lease for what takes time, and an engine may take
// that much of it without being late.
const (
	TTL         = time.Second
	TTLDocker   = 4 * time.Second
	TTLSentinel = 10 * time.Second

	takesDocker  = TTLDocker / 10
	takesProcess = TTL / 50
	takesService = time.Second // until a member that was started again is one of a cluster
)

// takes is how long it takes there to end, stop or start a server when nothing is
// in the way.
func (p Place) takes() time.Duration {
	switch p.World {
	case Docker:
		return takesDocker
	case Process:
		return takesProcess
	}
	return 0
}

// Lease is the lease in real time, unless a cell says otherwise.
func (p Place) Lease() time.Duration {
	switch {
	case p.Sentinel:
		return TTLSentinel
	case p.World == Docker:
		return TTLDocker
	}
	return TTL
}

// Crowd returns how many cells a processor can take there at a time. In real time
// a cell mostly waits.
func (p Place) Crowd() int {
	switch {
	case !p.Real():
		return 1
	case p.World == Process && !p.Sentinel:
		return 6
	}
	return 4
}

// Check finds out whether cells can be played there at all: whether there is a
// server program, an engine or a server that answers. It blocks until that is
// known. The error says in one line what is missing and what to do.
func (p Place) Check(ctx context.Context) error {
	if !p.Real() {
		return nil
	}
	k, err := p.kind()
	if err != nil {
		return err
	}
	return k.check(ctx)
}

// Sweep removes what the worlds of dead processes left there. Those of others
// are spared, and what can't be removed stays.
func (p Place) Sweep() {
	if p.Real() {
		tempdir.Sweep(p.Temp, clocksPrefix)
	}
	if k, err := p.kind(); err == nil {
		if k, ok := k.(sweeper); ok {
			k.sweep()
		}
	}
}

// Detach removes what the run named Run has left behind at a place that is not
// our own, whatever became of its cells, all of which must have ended. It does
// nothing in other worlds, or where cells clean up themselves. It blocks until
// that is done, or ctx is.
func (p Place) Leave(ctx context.Context) error {
	if k, err := p.kind(); err == nil {
		if k, ok := k.(leaver); ok {
			return k.leave(ctx)
		}
	}
	return nil
}

// CanWatch returns nil if strategies that are programs can be played on this
// system: how late the machine was with them is to be found out from outside.
func CanWatch() error {
	if err := proc.CanWatch(); err != nil {
		return fmt.Errorf("programs can't be clients here: %w", err)
	}
	return nil
}
