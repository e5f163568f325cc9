// Package external is a host of Redis servers that it doesn't have: the user
// runs them, for staging perhaps or in a cloud, and is visited.
//
// URLs come in; what goes out is addresses at which a world's links reach the
// servers in plain text, and the removal of every key that was made there. The
// package writes nothing itself and gives no orders to servers. It knows
// nothing of faults, links or clients.
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
)

// Options say which servers a [Host] visits.
type Options struct {
	// Redis are their addresses: host:port, or URLs redis://… or, with TLS,
	// rediss://….
	Redis []string
	// Run names the run that the cell is part of; whoever names one calls
	// [Remove] when the run is over, however it ended. Empty means a run of
	// its own, which is over when the host closes.
	Run string
}

// A Host visits servers. [New] makes one. Safe for concurrent use.
type Host struct {
	all   []address
	run   string // with the cell's own number
	isOwn bool   // it is a run of our own

	mu      sync.Mutex
	servers []*userServer
	closed  bool

	once     sync.Once
	closeErr error
}

var _ real.Host = (*Host)(nil)

// New reads the addresses. It connects to nothing.
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

// Key is the name of the lock: nobody else's, and the beginning of all keys
// that belong to it.
func (h *Host) Key() string { return Prefix(h.run) + "}:lock" }

// Start finds the server of a node and returns when it has let us log in. It
// must be a primary on its own. The spec's password is not asked for.
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

// CopyLogs makes the directory for the logs of others: these servers keep theirs
// to themselves.
func (h *Host) CopyLogs(dir string) error { return os.MkdirAll(dir, 0o755) }

// goodbye is how long the removal of keys may take.
const goodbye = time.Minute

// Close removes the keys that clients have used, and if nobody else will, looks
// for others. Clients must have ended. It blocks until then, a minute at most.
// The error says where keys may be left. Idempotent.
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

// userServer is a server that is visited.
type userServer struct {
	host    *Host
	address address
	client  *redis.Client
	forward *forwarder // nil where there is no TLS
	took    time.Duration

	mu   sync.Mutex
	sent map[string]bool // words that may be keys of ours
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

// Addr is where it is reached in plain text.
func (g *userServer) Addr() string {
	if g.forward != nil {
		return g.forward.addr()
	}
	return g.address.at
}

func (g *userServer) Login() real.Login   { return g.address.login }
func (g *userServer) Trip() time.Duration { return g.took }

// Sent notes the words that may be names of keys.
func (g *userServer) Sent(words []string) {
	switch strings.ToUpper(words[0]) {
	case "PUBLISH", "SUBSCRIBE", "PSUBSCRIBE", "SSUBSCRIBE", "UNSUBSCRIBE", "PUNSUBSCRIBE", "SUNSUBSCRIBE":
		return // channels, and perhaps none that the user may use as a key
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
