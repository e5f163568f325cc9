// Package external is a host of Redis servers that the user runs, such as servers of a staging
// system or in a cloud.
//
// The input is URLs. The output is addresses at which a world's links reach the servers in plain
// text, and the removal of every key that was created there. The package itself only reads and
// removes keys; it never stops or configures servers. It injects no faults, and must not depend on
// links or clients.
package external

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lockfault/lockfault/faults"
	"github.com/lockfault/lockfault/faults/real"
	"github.com/lockfault/lockfault/internal/rediscmd"
)

// Options name the servers of a [Host].
type Options struct {
	// Redis holds the addresses: host:port, or URLs redis://… or, with TLS, rediss://….
	Redis []string
	// Run names the run of the cell. A caller that names one must call [Remove] after the run,
	// however it ended. Empty means a separate run, which ends when the host closes.
	Run string
}

// A Host connects to servers of the user. [New] makes one. It is safe for concurrent use.
type Host struct {
	all   []address
	run   string // with a number for this host
	isOwn bool   // the run ends with the host

	mu      sync.Mutex
	servers []*userServer
	closed  bool

	once     sync.Once
	closeErr error
}

var _ real.Host = (*Host)(nil)

// New parses the addresses. It does not connect.
func New(options Options) (*Host, error) {
	all, err := parse(options.Redis)
	if err != nil {
		return nil, err
	}
	h := &Host{all: all, run: options.Run, isOwn: options.Run == ""}
	if h.isOwn {
		h.run = NewRun()
	}
	h.run += "-" + NewRun()[:8]
	return h, nil
}

// Key returns the name of the lock: unique, and the prefix of all keys that belong to the lock.
func (h *Host) Key() string { return Prefix(h.run) + "}:lock" }

// Start finds the server of a node and returns when the login has succeeded. The server must be a
// primary and no cluster node. The spec's password is not used.
func (h *Host) Start(ctx context.Context, spec real.ServerSpec) (real.Server, error) {
	node := 0
	for node < len(h.all) && faults.NodeName(node) != spec.Node {
		node++
	}
	switch {
	case node == len(h.all):
		return nil, fmt.Errorf("external: there is no Redis for %s: %d are named", spec.Node, len(h.all))
	case spec.Clock:
		return nil, fmt.Errorf("external: %w: this Redis is not ours", real.ErrNoClock)
	}
	g := &userServer{host: h, address: h.all[node], sent: map[string]bool{}}
	g.client = redis.NewClient(g.address.options())
	if err := g.begin(ctx); err != nil {
		_ = g.client.Close()
		return nil, err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		g.leave()
		return nil, errors.New("external: the host is closed")
	}
	h.servers = append(h.servers, g)
	return g, nil
}

// CopyLogs only makes the directory: the logs of these servers are not available.
func (h *Host) CopyLogs(dir string) error { return os.MkdirAll(dir, 0o755) }

// goodbye is the maximum time for the removal of keys.
const goodbye = time.Minute

// Close removes the keys that clients have used and, if the run ends with the host, searches for
// other keys of the run. Clients must have ended. Close blocks until then, at most 1 min. The error
// names the servers where keys may be left. Close is idempotent.
func (h *Host) Close() error {
	h.once.Do(func() {
		h.mu.Lock()
		h.closed = true
		guests := h.servers
		h.mu.Unlock()
		ctx, cancel := context.WithTimeout(context.Background(), goodbye)
		defer cancel()
		var errs []error
		for _, g := range guests {
			err := remove(ctx, g.client, g.keys()...)
			if err == nil && h.isOwn {
				err = sweep(ctx, g.client, h.run)
			}
			if err != nil {
				errs = append(errs, g.address.left(h.run, err))
			}
			g.leave()
		}
		h.closeErr = errors.Join(errs...)
	})
	return h.closeErr
}

// userServer is a server of the user.
type userServer struct {
	host    *Host
	address address
	client  *redis.Client
	forward *forwarder // nil without TLS
	took    time.Duration

	mu   sync.Mutex
	sent map[string]bool // words that may be keys of the run
}

var _ real.UnmanagedServer = (*userServer)(nil)

func (g *userServer) begin(ctx context.Context) (err error) {
	if _, err = g.address.visit(ctx, g.client); err != nil {
		return err
	}
	if g.took, err = g.address.trip(ctx, g.client); err != nil {
		return err
	}
	if g.address.tls != nil {
		g.forward, err = newForwarder(g.address)
	}
	return err
}

func (g *userServer) leave() {
	if g.forward != nil {
		g.forward.close()
	}
	_ = g.client.Close()
}

// Addr returns the address at which the server is reached in plain text.
func (g *userServer) Addr() string {
	if g.forward != nil {
		return g.forward.addr()
	}
	return g.address.at
}

func (g *userServer) Login() real.Login   { return g.address.login }
func (g *userServer) Trip() time.Duration { return g.took }

// Sent records the words that may be names of keys.
func (g *userServer) Sent(words []string) {
	if rediscmd.Of(words).AboutChannels() {
		return // channels, which the user may not be permitted to use as keys
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, word := range words {
		if strings.Contains(word, Prefix(g.host.run)) {
			g.sent[word] = true
		}
	}
}

func (g *userServer) keys() []string {
	g.mu.Lock()
	defer g.mu.Unlock()
	return slices.Sorted(maps.Keys(g.sent))
}
