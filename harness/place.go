package harness

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"time"

	"github.com/lockfault/lockfault/faults"
	"github.com/lockfault/lockfault/faults/docker"
	"github.com/lockfault/lockfault/faults/external"
	"github.com/lockfault/lockfault/faults/process"
	"github.com/lockfault/lockfault/faults/real"
	"github.com/lockfault/lockfault/harness/client"
	"github.com/lockfault/lockfault/scenarios"
)

// The worlds that cells can be played in.
const (
	Sim      = "sim"      // virtual time, in this process
	Process  = "process"  // redis-server processes of this machine
	Docker   = "docker"   // containers
	External = "external" // a Redis that the user has
)

// Worlds returns the names of all worlds.
func Worlds() []string { return []string{Sim, Process, Docker, External} }

// A Place says where to play, and with what. The zero value is virtual time,
// which needs nothing.
type Place struct {
	// World is one of [Worlds]; empty means Sim.
	World string
	// Client returns the command of a client's process: a program that
	// calls [client.Serve] on its standard streams. Sim needs none.
	Client func() *exec.Cmd `json:"-"`
	// RedisServer is the server program for Process; empty means the one on
	// PATH.
	RedisServer string
	// Image is the image for Docker; empty means [docker.DefaultImage].
	Image string
	// Watchman returns the command of a process that removes containers for
	// Docker if this one is killed: a program that calls [docker.Watch] on
	// its standard input. Nil means that they stay.
	Watchman func() *exec.Cmd `json:"-"`
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
	// Logs is a directory for what servers logged in a cell that ended in an
	// error; empty means that nobody wants that.
	Logs string
	// Opened is called with what ends the servers of a world, and removes
	// what they keep, before the first of them is started: for one who has to
	// leave in the midst of a cell. It may be closed by any goroutine, and
	// more than once. Nil means that nobody wants that.
	Opened func(servers io.Closer) `json:"-"`
}

// real reports whether time is real there.
func (p Place) real() bool { return p.World != Sim && p.World != "" }

// The lease in worlds of real time, unless a cell says otherwise. An engine takes
// half a second, and on a busy machine a whole one, to end a container or start
// it again; sentinels take a second or two. The lease must outlast that.
const (
	TTL         = time.Second
	TTLDocker   = 3 * time.Second
	TTLSentinel = 5 * time.Second
)

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

// takes says why a cell can't be played there, if it can't.
func (p Place) takes(cell Cell) (ok bool, why string) {
	if p.World == External {
		return p.externalTakes(cell)
	}
	if !p.Sentinel {
		return true, ""
	}
	switch {
	case !has[faults.Failover](cell.Script):
		return false, "there is no failover for sentinels to do"
	case cell.Strategy.Nodes > 1:
		return false, fmt.Sprintf("sentinels watch one node, and %s runs on %d", cell.Strategy.Name, cell.Strategy.Nodes)
	}
	return true, ""
}

// has reports whether a script has a fault of that type.
func has[F faults.Fault](script *scenarios.Script) bool {
	for _, step := range script.Steps {
		if inject, ok := step.Do.(scenarios.Inject); ok {
			if _, ok := inject.Fault.(F); ok {
				return true
			}
		}
	}
	return false
}

// bearable is which part of a lease the machine may be late. Scripts leave
// twice as much room.
const bearable = 20

// bearable returns how late the machine may be: less than that, if the script
// counts on something that it tells in absolute time, before another thing
// happens.
func (c Cell) bearable() time.Duration {
	limit := c.TTL / bearable
	for _, step := range c.Script.Steps {
		inject, ok := step.Do.(scenarios.Inject)
		if !ok {
			continue
		}
		var by faults.Span
		switch f := inject.Fault.(type) {
		case faults.Replication:
			by = f.Delay
		case faults.Delay:
			by = f.By
		}
		if by.Abs > 0 {
			limit = min(limit, by.Abs/2)
		}
	}
	return limit
}

// playReal plays the cell in real time. If the machine was too slow to say that
// what happened was the lock's doing, it is unknown.
func playReal(cell Cell, outcome *Outcome) {
	if cell.TTL == 0 {
		cell.TTL = cell.Place.Lease()
	}
	s, late, err := playOnce(cell)
	outcome.of(s)
	limit := cell.bearable()
	if late > limit {
		outcome.Late = late
	}
	switch {
	case errors.Is(err, real.ErrNoClock):
		outcome.Status, outcome.Reason, outcome.Expected = NotApplicable, err.Error(), nil
	case errors.Is(err, real.ErrTooFar):
		outcome.Status, outcome.Reason = Unknown, err.Error()
	case errors.Is(err, real.ErrRefused):
		outcome.Status, outcome.Reason = Error, err.Error()
	case err != nil && (s == nil || s.cold):
		// Nothing has been done to the lock yet: the machine may have been
		// too slow to start everything. It is worth another try.
		outcome.Late = max(late, 1)
		outcome.Status, outcome.Reason = Error, err.Error()
	case outcome.Late != 0:
		outcome.Status = Unknown
		outcome.Reason = fmt.Sprintf("the machine was %v late, more than the %v that the script bears: give fewer --jobs or a longer --ttl",
			late.Round(time.Millisecond), limit)
	case err != nil:
		outcome.Status, outcome.Reason = Error, err.Error()
	default:
		outcome.judge()
	}
}

// playOnce plays the cell once, and says how late the machine was.
func playOnce(cell Cell) (s *stage, late time.Duration, err error) {
	var log logbook
	s, world, servers, err := newRealStage(cell, &log)
	if err != nil {
		return nil, 0, err
	}
	defer func() {
		late = world.Late()
		err = errors.Join(err, s.close())
	}()
	err = s.perform()
	if broken := world.Err(); !errors.Is(err, broken) {
		err = errors.Join(err, broken)
	}
	if err != nil && cell.Place.Logs != "" {
		dir := filepath.Join(cell.Place.Logs, cell.Place.World, cell.Strategy.Name, cell.Script.Name)
		err = errors.Join(err, servers.CopyLogs(dir), os.WriteFile(filepath.Join(dir, "toxiproxy.log"), log.bytes(), 0o644))
	}
	return s, 0, err
}

// logbook keeps what is written to it. The zero value is empty. Safe for
// concurrent use.
type logbook struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (l *logbook) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.Write(p)
}

func (l *logbook) bytes() []byte {
	l.mu.Lock()
	defer l.mu.Unlock()
	return bytes.Clone(l.buf.Bytes())
}

// newRealStage makes a stage with servers and processes; its proxies log to log.
func newRealStage(cell Cell, log io.Writer) (*stage, *real.World, host, error) {
	s := newStage(cell, cell.Place.World)
	cfg := real.Config{
		Nodes: len(s.history.Meta.Nodes), Replicas: s.script.Replicas,
		Clock:  has[faults.NodeClock](s.script) || has[faults.NodeDrift](s.script),
		Client: cell.Place.Client, Key: s.key, TTL: s.ttl, Log: log, Record: s.record,
	}
	if cell.Place.Sentinel {
		cfg.Sentinels = 3
	}
	servers, err := cell.Place.host()
	if err != nil {
		return nil, nil, nil, err
	}
	cfg.Host = servers
	if cell.Place.Opened != nil {
		cell.Place.Opened(servers)
	}
	if visitor, ok := servers.(*external.Host); ok {
		s.key = visitor.Key()
		cfg.Key = s.key
	}
	world, err := real.New(context.Background(), cfg)
	if err != nil {
		return nil, nil, nil, err
	}
	s.world = world
	s.broken = world.Err
	s.embody = func(setup client.Setup) (body, error) { return newRemote(setup, world) }
	return s, world, servers, nil
}

// Check finds out whether cells can be played there at all: whether there is a
// server program, an engine or a server that answers. The error says in one
// line what is missing and what to do.
func (p Place) Check() error {
	switch {
	case !p.real():
		return nil
	case p.World == External:
		return external.Check(context.Background(), p.Redis)
	}
	servers, err := p.host()
	if err != nil {
		return err
	}
	return servers.Close()
}

// Sweep removes what the worlds of dead processes left there. Those of others
// are spared, and what can't be removed stays.
func (p Place) Sweep() {
	if p.World == Process {
		process.Sweep(p.Temp)
	}
}

// host is who has the servers of a world.
type host interface {
	real.Host
	// CopyLogs copies what the servers logged into a directory.
	CopyLogs(dir string) error
}

// host returns who has the servers there.
func (p Place) host() (host, error) {
	switch p.World {
	case Process:
		return process.New(process.Options{Binary: p.RedisServer, Dir: p.Temp})
	case Docker:
		return docker.New(context.Background(), docker.Options{Image: p.Image, Dir: p.Temp, Watchman: p.Watchman})
	case External:
		return external.New(external.Options{Redis: p.Redis, Run: p.Run})
	}
	return nil, fmt.Errorf("harness: there is no world %q", p.World)
}
