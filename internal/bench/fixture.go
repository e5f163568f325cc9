package bench

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/lockfault/lockfault/checker"
	"github.com/lockfault/lockfault/faults"
	"github.com/lockfault/lockfault/faults/real"
	"github.com/lockfault/lockfault/faults/real/proxy"
	"github.com/lockfault/lockfault/internal/harness"
	"github.com/lockfault/lockfault/internal/worlds"
	"github.com/lockfault/lockfault/strategies"
)

// lease is the locks' lease. It is longer than any pair takes.
const lease = 10 * time.Second

// key is the lock's key.
const key = "lock"

// A fixture holds the servers and the links to them. The world idle has the gate as it is before a
// script begins, and its servers also serve the paths without a gate. In the world begun, a script
// has begun.
type fixture struct {
	idle, begun *world
	links       *proxy.Proxies
}

func (o Options) newRig(ctx context.Context, s strategies.Strategy) (*fixture, error) {
	service, err := worlds.Programs{Services: o.Services}.ServiceOf(s)
	if err != nil {
		return nil, err
	}
	r := &fixture{links: proxy.New(nil)}
	if r.idle, err = o.newWorld(ctx, s, service, false); err == nil {
		r.begun, err = o.newWorld(ctx, s, service, true)
	}
	if err != nil {
		return nil, errors.Join(err, r.close())
	}
	return r, nil
}

func (r *fixture) close() error {
	err := r.links.Close()
	for _, w := range []*world{r.idle, r.begun} {
		if w != nil {
			err = errors.Join(err, w.close())
		}
	}
	return err
}

// err returns the error that stopped a world; nil if both run.
func (r *fixture) err() error { return errors.Join(r.idle.failed(), r.begun.failed()) }

// places returns the addresses of a client's nodes on a path.
func (r *fixture) places(path, client string) ([]real.Place, error) {
	switch path {
	case Gate:
		return r.idle.admit(client)
	case Recorded:
		return r.begun.admit(client)
	}
	places := r.idle.servers.places()
	if path == Direct {
		return places, nil
	}
	for i, p := range places {
		link, err := r.links.Open(fmt.Sprintf("%s to %s", client, faults.NodeName(i)), p.Addr, nil)
		if err != nil {
			return nil, err
		}
		places[i].Addr = link.Addr()
	}
	return places, nil
}

// A world is a real world with a goroutine that plays a script without steps.
type world struct {
	*real.World
	servers *servers
	ctx     context.Context
	end     context.CancelFunc
	todo    chan func()
	ended   chan struct{}
}

func (o Options) newWorld(ctx context.Context, s strategies.Strategy, service worlds.Service, begun bool) (*world, error) {
	nodes := max(1, s.Nodes)
	host, err := o.hostOf(ctx, service, nodes)
	if err != nil {
		return nil, err
	}
	w := &world{servers: &servers{Host: host, service: service}, todo: make(chan func(), 1), ended: make(chan struct{})}
	cfg := real.Config{Host: w.servers, Nodes: nodes, Replicas: o.Replicas, Lock: harness.Cell{Strategy: s}.Lock(key), TTL: lease, Record: func(checker.Event) {}}
	if service != nil {
		cfg.Service = service
	}
	w.World, err = real.New(ctx, cfg)
	if err != nil {
		return nil, err
	}
	if begun {
		w.Begin()
	}
	w.ctx, w.end = context.WithCancel(context.Background())
	go w.play()
	return w, nil
}

// play runs the world until it is closed or fails.
func (w *world) play() {
	defer close(w.ended)
	for w.ctx.Err() == nil {
		w.Run(time.Hour, func() bool {
			select {
			case do := <-w.todo:
				do()
			default:
			}
			return w.ctx.Err() != nil
		})
		if w.Err() != nil {
			return
		}
	}
}

// failed returns the error that stopped the world; nil if the world runs.
func (w *world) failed() error {
	select {
	case <-w.ended:
		return w.Err()
	default:
		return nil
	}
}

// admit opens the links of a client.
func (w *world) admit(client string) (places []real.Place, err error) {
	done := make(chan struct{})
	w.todo <- func() {
		var home real.Home
		home, err = w.Admit(client)
		places = home.Places
		close(done)
	}
	w.Notify()
	select {
	case <-done:
		return places, err
	case <-w.ended:
		return nil, w.Err()
	}
}

func (w *world) close() error {
	w.end()
	w.Notify()
	<-w.ended
	return w.Close()
}

// servers is a host that records the addresses of its nodes.
type servers struct {
	real.Host
	service worlds.Service // nil means Redis

	mu    sync.Mutex
	nodes map[string]real.Place // primaries, by node
}

// Start implements [real.Host].
func (s *servers) Start(ctx context.Context, spec real.ServerSpec) (real.Server, error) {
	server, err := s.Host.Start(ctx, spec)
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, has := s.nodes[spec.Node]; err == nil && !has { // the primary of a node is started first
		if s.nodes == nil {
			s.nodes = map[string]real.Place{}
		}
		login := real.Login{Password: spec.Password}
		if s.service != nil {
			login = s.service.Login(spec.Password)
		}
		s.nodes[spec.Node] = real.Place{Addr: server.Addr(), Username: login.Username, Password: login.Password}
	}
	return server, err
}

// places returns the addresses of the nodes, in the order of their numbers.
func (s *servers) places() []real.Place {
	s.mu.Lock()
	defer s.mu.Unlock()
	list := make([]real.Place, 0, len(s.nodes))
	for i := range len(s.nodes) {
		list = append(list, s.nodes[faults.NodeName(i)])
	}
	return list
}
