// Package lending lends the servers of a host to one world after the other: to
// start a server takes longer than most of what is played on it.
//
// A [real.Host] goes in; what comes out is a [real.Host] for each world, and no
// world can tell its servers from new ones. When it closes, they are reset; before
// they are lent again it is proven that each is as it was when it was new. One
// that isn't, or has ended, is started anew. The package knows nothing of faults,
// links or clients.
package reuse

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"sync"

	"github.com/lockfault/lockfault/faults/real"
)

// A Host is one whose servers can be lent. They are [real.ManagedServer].
type Host interface {
	real.Host
	// CopyLogs copies what the servers logged since the last NewPage, or ever,
	// into a directory.
	CopyLogs(dir string) error
	// NewPage has the logs begin anew.
	NewPage()
}

// A Pool has the servers of one host, and lends them to one world at a time.
// [New] makes one. Safe for concurrent use.
type Pool struct {
	host     Host
	password string

	mu      sync.Mutex
	servers map[string]*server // by name
	noClock error              // why no clock can be moved here, once that is known
	spoiled error              // why nothing can be lent any more
}

// New returns a lender of the host's servers, of which none must have been
// started. Whoever has it closes it, and not the host.
func New(host Host) *Pool {
	return &Pool{host: host, password: rand.Text(), servers: map[string]*server{}}
}

// Lend returns a host for one world, whose Close takes the servers back. The
// loan before must be closed. The error says why there is nothing to be lent any
// more: a server could not be started, and what became of it is not known.
func (l *Pool) Lend() (Handle, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.spoiled != nil {
		return nil, fmt.Errorf("lending: no server can be lent any more: %w", l.spoiled)
	}
	l.host.NewPage()
	loan := &loan{lender: l}
	if host, ok := l.host.(real.GatewayHost); ok {
		return &gatewayLoan{loan, host}, nil
	}
	return loan, nil
}

// Close ends every server, lent or not, as [real.Host] says.
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

// A Handle is the servers that one world has.
type Handle interface {
	real.LendingHost
	// CopyLogs copies what the servers logged since they were lent into a
	// directory.
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

// Start implements [real.Host]: the server of that name is lent, and started if it
// never was. It has a clock of its own, asked for or not, wherever one is to be had:
// else there would have to be two of it.
func (l *loan) Start(ctx context.Context, spec real.ServerSpec) (real.Server, error) {
	s, err := l.lender.server(ctx, spec)
	if err != nil {
		return nil, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.over {
		return nil, errors.New("lending: the loan is over")
	}
	l.lent = append(l.lent, s)
	return s.ManagedServer, nil
}

// Close takes the servers back. It never fails: what can't be reset is started
// anew when it is lent again.
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

// server returns a server that is as new.
func (l *Pool) server(ctx context.Context, spec real.ServerSpec) (*server, error) {
	if spec.Password != l.password {
		return nil, fmt.Errorf("lending: %s has another password than it is asked for", spec.Name)
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

// start starts a server for the first time, with a clock of its own if there may
// be one.
func (l *Pool) start(ctx context.Context, spec real.ServerSpec, clock bool) (*server, error) {
	name, wanted := spec.Name, spec.Clock
	spec.Clock = clock
	if !clock {
		spec.Name += "-plain" // the one that was to have a clock has the name
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
