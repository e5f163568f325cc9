// Package reuse lends the servers of a host to one world after the other, because starting a server
// takes longer than most scenarios.
//
// The input is a [real.Host]; the output is a [real.Host] for each world, whose servers can't be
// told from new ones. When a world's host closes, its servers are reset; before a server is lent
// again, its state is compared with its state when it was new. A server that differs, or has ended,
// is started again. The package must not depend on faults, links or clients.
package reuse

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"sync"

	"github.com/lockfault/lockfault/faults/real"
)

// A Host is a host whose servers can be lent. Each server must be a [real.ManagedServer].
type Host interface {
	real.Host
	// CopyLogs copies what the servers logged since the last NewPage, or since their start, into a
	// directory.
	CopyLogs(dir string) error
	// NewPage makes CopyLogs begin at the current end of each log.
	NewPage()
}

// A Pool owns the servers of one host, and lends them to one world at a time. [New] makes one. It
// is safe for concurrent use.
type Pool struct {
	host     Host
	password string

	mu      sync.Mutex
	servers map[string]*server // by name
	noClock error              // why the clocks of servers can't be moved here; nil until that is known
	spoiled error              // why no server can be lent any more
}

// New returns a pool of the host's servers, none of which may have been started. The caller must
// close the pool and not the host.
func New(host Host) *Pool {
	return &Pool{host: host, password: rand.Text(), servers: map[string]*server{}}
}

// Lend returns a host for one world; its Close returns the servers to the pool. The previous handle
// must be closed. Lend fails after a server could not be started, because the state of that server
// is unknown, and after Close.
func (l *Pool) Lend() (Handle, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.spoiled != nil {
		return nil, fmt.Errorf("reuse: no server can be lent any more: %w", l.spoiled)
	}
	l.host.NewPage()
	loan := &loan{lender: l}
	if host, ok := l.host.(real.GatewayHost); ok {
		return &gatewayLoan{loan, host}, nil
	}
	return loan, nil
}

// Close ends every server, lent or not, as [real.Host] specifies.
func (l *Pool) Close() error {
	l.spoil(errors.New("the lender is closed"))
	return l.host.Close()
}

func (l *Pool) spoil(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.spoiled == nil {
		l.spoiled = err
	}
}

// A Handle holds the servers that are lent to one world.
type Handle interface {
	real.LendingHost
	// CopyLogs copies what the servers logged since they were lent into a directory.
	CopyLogs(dir string) error
}

type loan struct {
	lender *Pool

	mu   sync.Mutex
	lent []*server
	over bool
}

type gatewayLoan struct {
	*loan
	host real.GatewayHost
}

var (
	_ Handle           = (*loan)(nil)
	_ real.GatewayHost = (*gatewayLoan)(nil)
)

// Gateway implements [real.GatewayHost].
func (l *gatewayLoan) Gateway(ctx context.Context, node string) (string, error) {
	return l.host.Gateway(ctx, node)
}

// Password implements [real.LendingHost].
func (l *loan) Password() string { return l.lender.password }

// CopyLogs implements [Handle].
func (l *loan) CopyLogs(dir string) error { return l.lender.host.CopyLogs(dir) }

// Start implements [real.Host]. It lends the server with that name, and starts it at its first use.
// Wherever clocks can be moved, the server has its own clock, even if the spec doesn't ask for one:
// otherwise two servers with that name would be necessary.
func (l *loan) Start(ctx context.Context, spec real.ServerSpec) (real.Server, error) {
	s, err := l.lender.server(ctx, spec)
	if err != nil {
		return nil, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.over {
		return nil, errors.New("reuse: the loan is over")
	}
	l.lent = append(l.lent, s)
	return s.ManagedServer, nil
}

// Close returns the servers to the pool. It never fails: a server that can't be reset is started
// again when it is lent next.
func (l *loan) Close() error {
	l.mu.Lock()
	lent := l.lent
	l.lent, l.over = nil, true
	l.mu.Unlock()
	var resets sync.WaitGroup
	for _, s := range lent {
		resets.Go(s.reset)
	}
	resets.Wait()
	return nil
}

// server returns a server in its initial state.
func (l *Pool) server(ctx context.Context, spec real.ServerSpec) (*server, error) {
	if spec.Password != l.password {
		return nil, fmt.Errorf("reuse: %s has another password than it is asked for", spec.Name)
	}
	l.mu.Lock()
	s, noClock := l.servers[spec.Name], l.noClock
	l.mu.Unlock()
	if spec.Clock && noClock != nil {
		return nil, noClock
	}
	var err error
	if s != nil {
		err = s.renew(ctx)
	} else {
		s, err = l.start(ctx, spec, noClock == nil)
	}
	if err != nil && !errors.Is(err, real.ErrNoClock) {
		l.spoil(err)
	}
	return s, err
}

// start starts a server for the first time, with its own clock if clock is set and the host
// supports that.
func (l *Pool) start(ctx context.Context, spec real.ServerSpec, clock bool) (*server, error) {
	name, wanted := spec.Name, spec.Clock
	spec.Clock = clock
	if !clock {
		spec.Name += "-plain" // the attempt with a clock has used the name
	}
	started, err := l.host.Start(ctx, spec)
	if errors.Is(err, real.ErrNoClock) {
		l.mu.Lock()
		l.noClock = err
		l.mu.Unlock()
		if wanted {
			return nil, err
		}
		spec.Name = name
		return l.start(ctx, spec, false)
	}
	if err != nil {
		return nil, err
	}
	s := &server{ManagedServer: started.(real.ManagedServer), name: spec.Name, password: l.password, clock: clock}
	if s.new, err = s.inspect(ctx); err != nil {
		return nil, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.servers[name] = s
	return s, nil
}
