package strategies

import (
	"context"
	"fmt"
	"net"
	"time"

	"github.com/redis/go-redis/v9"
)

// Addr returns the address of the i-th of Nodes, from 0, which is what a client
// library is told to connect to with [Env.Dial] as its dialer. No two nodes have
// the same, so libraries may keep what they know by address. It is host and port,
// except where sentinels know the node: there it is the name that go-redis has for
// that. Nothing else than Dial reaches a node by it in every world.
func (env Env) Addr(i int) string {
	if o := env.options(i); o != nil {
		return o.Addr
	}
	return ""
}

// ReadTimeout is how long a client library should wait for an answer, as the
// script's read-timeout says: that of the go-redis clients in Nodes. Zero says that
// there is no limit.
func (env Env) ReadTimeout() time.Duration {
	if o := env.options(0); o != nil {
		return max(0, o.ReadTimeout)
	}
	return 0
}

// Dial connects to the node at one of the addresses that [Env.Addr] returns. It has the form of
// [net.Dialer.DialContext], as the client libraries want it: in go-redis it is
// Options.Dialer, in redigo it goes into DialContextFunc, in rueidis DialCtxFn calls
// it. The network is not looked at.
//
// The connection is one of this client's, like those of Nodes, which are dialled by the
// same code: faults befall it, what is said on it is recorded, and it ends with the client's process. Where the
// node asks for a login, or has another database than 0, Dial has sent AUTH and
// SELECT: the library is told neither user nor password nor database. It must be
// closed by whoever dialled; a lock does so in its Close.
//
// Dial takes no longer than the client library of Nodes may take to connect, and
// returns before if ctx is done. The error is that of the network, or says that the
// login was refused. Safe for concurrent use.
func (env Env) Dial(ctx context.Context, _, addr string) (net.Conn, error) {
	o, err := env.at(addr)
	if err != nil {
		return nil, err
	}
	if o.DialTimeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, o.DialTimeout)
		defer cancel()
	}
	conn, err := o.Dialer(ctx, o.Network, o.Addr)
	if err != nil {
		return nil, err
	}
	if err := logIn(ctx, conn, o); err != nil {
		_ = conn.Close()
		return nil, fmt.Errorf("strategies: Env.Dial: logging in at %s: %w", addr, err)
	}
	return conn, nil
}

// options returns how the i-th client of Nodes is set up, nil if it isn't the
// client of one server.
func (env Env) options(i int) *redis.Options {
	if of, ok := env.Nodes[i].(interface{ Options() *redis.Options }); ok {
		return of.Options()
	}
	return nil
}

// at returns how the client of the node at that address is set up.
func (env Env) at(addr string) (found *redis.Options, err error) {
	var all []string
	for i := range env.Nodes {
		o := env.options(i)
		if o == nil {
			return nil, fmt.Errorf("strategies: Env.Dial: Env.Nodes[%d] is a %T; only a *redis.Client says how to dial", i, env.Nodes[i])
		}
		all = append(all, o.Addr)
		if o.Addr != addr {
			continue
		}
		if found != nil {
			return nil, fmt.Errorf("strategies: Env.Dial: two of Env.Nodes have the address %s: give each its own in redis.Options.Addr", addr)
		}
		found = o
	}
	if found == nil {
		return nil, fmt.Errorf("strategies: Env.Dial: no node is at %q, only at %q: take the address from Env.Addr", addr, all)
	}
	return found, nil
}
