package worlds

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"sync"
	"time"

	"github.com/lockfault/lockfault/checker"
	"github.com/lockfault/lockfault/faults"
	"github.com/lockfault/lockfault/faults/real"
	"github.com/lockfault/lockfault/faults/real/reuse"
	"github.com/lockfault/lockfault/internal/harness"
	"github.com/lockfault/lockfault/internal/harness/client"
)

// Env is a place with its running servers: a [harness.Place] that keeps its servers from one cell
// to the next. An Env runs one cell at a time. Make it with [NewVenue].
type Env struct {
	place    Place
	kind     backend
	programs Programs

	mu      sync.Mutex
	lender  *reuse.Pool // of reusable servers, if any
	host    io.Closer   // the current host of the servers
	service io.Closer   // the host of the last cell on another service
	closed  bool
}

var _ harness.Place = (*Env)(nil)

// NewVenue returns the Env of a place whose time is real. NewVenue starts no servers. The caller
// must close the Env.
func NewVenue(place Place, programs Programs) (*Env, error) {
	kind, err := place.kind(programs.Containers)
	if err != nil {
		return nil, err
	}
	return &Env{place: place, kind: kind, programs: programs}, nil
}

// Is reports whether the Env belongs to the given place.
func (v *Env) Is(place Place) bool { return reflect.DeepEqual(v.place, place) }

// Name implements [harness.Place].
func (v *Env) Name() string { return v.place.World }

// Lease implements [harness.Place].
func (v *Env) Lease() time.Duration { return v.place.Lease() }

// Takes implements [harness.Place].
func (v *Env) Takes(cell harness.Cell) (ok bool, why string) {
	switch service, err := v.programs.ServiceOf(cell.Strategy); {
	case err != nil:
		return false, err.Error()
	case service != nil:
		return v.place.serviceTakes(service, cell)
	}
	return v.kind.takes(cell)
}

// Open implements [harness.Place].
func (v *Env) Open(cell harness.Cell, record func(checker.Event)) (harness.World, error) {
	w, err := v.open(cell, record)
	if err != nil {
		return nil, unopened(err)
	}
	return w, nil
}

func (v *Env) open(cell harness.Cell, record func(checker.Event)) (*world, error) {
	ctx := context.Background()
	service, err := v.programs.ServiceOf(cell.Strategy)
	if err != nil {
		return nil, err
	}
	servers, err := v.servers(ctx, cell)
	if err != nil {
		return nil, err
	}
	w := &world{env: v, cell: cell, servers: servers, key: harness.LockKey}
	if keyed, ok := servers.(interface{ Key() string }); ok {
		w.key = keyed.Key()
	}
	cfg := real.Config{
		Host: servers, Nodes: max(1, cell.Strategy.Nodes), Replicas: cell.Script.Replicas,
		Clock:  has[faults.NodeClock](cell.Script) || has[faults.NodeDrift](cell.Script),
		Client: w.command, Foreign: cell.Strategy.Program != nil, Lock: cell.Lock(w.key), TTL: cell.TTL, Takes: v.place.takes(), Log: &w.log, Record: record,
	}
	if v.place.Sentinel {
		cfg.Sentinels = 3
	}
	if service != nil {
		cfg.Service, cfg.Takes = service, takesService
	}
	if cfg.Foreign && !cell.Strategy.Program.Full && has[faults.ClientClock](cell.Script) {
		if w.clocks, err = newClocks(ctx, v.place.Temp); err != nil {
			return nil, errors.Join(err, servers.Close())
		}
	}
	if w.World, err = real.New(ctx, cfg); err != nil {
		return nil, errors.Join(err, w.clocks.close())
	}
	return w, nil
}

// servers returns the host of the servers for the next cell.
func (v *Env) servers(ctx context.Context, cell harness.Cell) (Host, error) {
	service, err := v.programs.ServiceOf(cell.Strategy)
	if err != nil {
		return nil, err
	}
	if service != nil {
		return v.ofService(ctx, service, cell)
	}
	if v.lender != nil {
		if servers, err := v.lender.Lend(); err == nil {
			return servers, nil
		}
		// A server could not be started: closing the reused servers frees resources for new ones.
		if err := v.lender.Close(); err != nil {
			return nil, err
		}
		v.lender = nil
	}
	h, err := v.kind.host(ctx, v.programs)
	if err != nil {
		return nil, err
	}
	// The state of sentinels cannot be reset.
	kept, lendable := h.(reuse.Host)
	lendable = lendable && !v.place.Sentinel
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.closed {
		return nil, errors.Join(errors.New("worlds: the venue is closed"), h.Close())
	}
	v.host = h
	if !lendable {
		return h, nil
	}
	v.lender = reuse.New(kept)
	v.host = v.lender
	return v.lender.Lend()
}

// ofService returns the host of a service's servers for one cell; these servers are not reused.
func (v *Env) ofService(ctx context.Context, service Service, cell harness.Cell) (Host, error) {
	h, err := service.Host(ctx, max(1, cell.Strategy.Nodes), cell.Script.Replicas, v.place.Temp)
	if err != nil {
		return nil, err
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.closed {
		return nil, errors.Join(errors.New("worlds: the venue is closed"), h.Close())
	}
	v.service = h
	return h, nil
}

// Close ends the servers, even during a cell, and removes their data. Any goroutine may call Close,
// more than once.
func (v *Env) Close() error {
	v.mu.Lock()
	v.closed = true
	kept := []io.Closer{v.host, v.service}
	v.mu.Unlock()
	var errs []error
	for _, h := range kept {
		if h != nil {
			errs = append(errs, h.Close())
		}
	}
	return errors.Join(errs...)
}

// world is the world of one cell.
type world struct {
	*real.World
	env     *Env
	cell    harness.Cell
	servers Host
	key     string
	log     logBuffer // of its proxies
	begun   bool
	lives   []body
	clocks  *clocks // of clients that are programs; nil if the script moves no client's clock
}

// Key implements [harness.World].
func (w *world) Key() string { return w.key }

// Embody implements [harness.World]: clients are processes.
func (w *world) Embody(setup client.Setup) (harness.ClientProcess, error) {
	for _, former := range w.lives {
		if former.called() == setup.Client {
			former.lastWords(false)
		}
	}
	b, err := w.live(setup)
	if err != nil {
		return nil, err
	}
	w.lives = append(w.lives, b)
	if setup.Life > 0 {
		return b, nil
	}
	lives := 0
	for _, f := range injected[faults.RestartClient](w.cell.Script) {
		if f.Client == setup.Client {
			lives++
		}
	}
	return b, w.Prepare(setup.Client, lives)
}

// live starts a client's process.
func (w *world) live(setup client.Setup) (body, error) {
	if program := w.cell.Strategy.Program; program != nil && !program.Full {
		return newProgram(setup, w)
	}
	return newRemote(setup, w.World)
}

// command returns the command of a client's process.
func (w *world) command() *exec.Cmd {
	program := w.cell.Strategy.Program
	if program == nil {
		return w.env.programs.Client()
	}
	cmd := exec.Command(program.Words[0], program.Words[1:]...)
	w.clocks.give(cmd)
	return cmd
}

// Begin implements [faults.World].
func (w *world) Begin() {
	w.begun = true
	w.World.Begin()
}

// keepLogs copies the logs of servers and proxies to the place's Logs directory, if it is set.
func (w *world) keepLogs() error {
	if w.env.place.Logs == "" {
		return nil
	}
	dir := filepath.Join(w.env.place.Logs, w.env.place.World, w.cell.Strategy.Name, w.cell.Script.Name)
	return errors.Join(w.servers.CopyLogs(dir), os.WriteFile(filepath.Join(dir, "toxiproxy.log"), w.log.bytes(), 0o644))
}

// logBuffer stores all data that is written to it. The zero value is empty. A logBuffer is safe for
// concurrent use.
type logBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (l *logBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.Write(p)
}

func (l *logBuffer) bytes() []byte {
	l.mu.Lock()
	defer l.mu.Unlock()
	return bytes.Clone(l.buf.Bytes())
}
