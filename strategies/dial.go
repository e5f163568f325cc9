package strategies

import (
	"context"
	"fmt"
	"net"
	"time"

	"github.com/redis/go-redis/v9"
)

// Addr returns the address of Nodes[i]. A client library connects to Addr with [Env.Dial] as its
// dialer. No two nodes have the same address, so libraries may use the address as a cache key.
//
// The address is host and port, except for a node behind sentinels: there the address is go-redis's
// name for that node. Only Dial reaches a node by its address in every world. Addr returns an empty
// string if Nodes[i] is not the client of one server.
func (env Env) Addr(i int) string {
	if o := env.options(i); o != nil {
		return o.Addr
	}
	return ""
}

// ReadTimeout returns how long a client library should wait for a reply. The result is the read
// timeout of the go-redis clients in Nodes, which the script's read-timeout sets. Zero means no
// limit.
func (env Env) ReadTimeout() time.Duration {
	if o := env.options(0); o != nil {
		return max(0, o.ReadTimeout)
	}
	return 0
}

// Dial connects to the node at an address from [Env.Addr]. Dial has the signature of
// [net.Dialer.DialContext], which client libraries accept: Options.Dialer in go-redis,
// DialContextFunc in redigo, a call from DialCtxFn in rueidis. Dial ignores the network argument.
//
// The connection belongs to this client, like those of Nodes, which use the same dialer: faults
// apply to it, its traffic is recorded, and it ends with the client's process. If the node requires
// a login, or uses another database than 0, Dial has sent AUTH and SELECT, so the library needs no
// user, password or database. The caller must close the connection; a lock does so in its Close.
//
// Dial takes at most the dial timeout of the clients in Nodes, and returns earlier if ctx is done.
// The error is a network error or a refused login. Dial is safe for concurrent use.
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

// options returns the options of the client Nodes[i], or nil if that client is not the client of
// one server.
func (env Env) options(i int) *redis.Options {
	if of, ok := env.Nodes[i].(interface{ Options() *redis.Options }); ok {
		return of.Options()
	}
	return nil
}

// at returns the options of the client whose node has the given address.
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
