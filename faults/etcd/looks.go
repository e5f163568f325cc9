package etcd

import (
	"context"
	"errors"
	"strings"
	"sync"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/connectivity"

	"github.com/lockfault/lockfault/faults/real"
)

// An eye is a connection to one member by which it is asked whose a lock is, there from the first time until close. The zero value
// is ready. Safe for concurrent use.
type eye struct {
	mu     sync.Mutex
	client *clientv3.Client
	closed bool
}

// errBlind says that there is no connection at the moment.
var errBlind = errors.New("it is not connected")

// Look implements [real.Looker]. A query is a prefix of keys with $1 for the lock's name: the oldest of them has the lock, and its value says whose
// it is, as long as the key's lease if it has one.
func (s *server) Look(ctx context.Context, query, name string) (seen real.Sight, err error) {
	client, err := s.eye.open(s.Addr(), s.Spec.Password)
	if err != nil {
		return seen, err
	}
	got, err := client.Get(ctx, strings.ReplaceAll(query, "$1", name), clientv3.WithPrefix(), clientv3.WithSerializable(),
		clientv3.WithSort(clientv3.SortByCreateRevision, clientv3.SortAscend), clientv3.WithLimit(1))
	if err != nil {
		return seen, err
	}
	seen.Version = got.Header.Revision
	for _, kv := range got.Kvs {
		h := real.Holder{Owner: string(kv.Value)}
		if kv.Lease != 0 {
			h.Ends = real.WithLease
		}
		seen.Holders = append(seen.Holders, h)
	}
	return seen, nil
}

// open returns the connection, once it is there.
func (e *eye) open(addr, password string) (*clientv3.Client, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed {
		return nil, errBlind
	}
	if e.client == nil {
		quick := backoff.Config{BaseDelay: 10 * time.Millisecond, Multiplier: 1.2, MaxDelay: 100 * time.Millisecond}
		client, err := clientv3.New(clientv3.Config{
			Endpoints: []string{addr}, Username: user, Password: password, DialTimeout: startLimit,
			DialOptions: []grpc.DialOption{grpc.WithConnectParams(grpc.ConnectParams{Backoff: quick, MinConnectTimeout: time.Second})},
		})
		if err != nil {
			return nil, err
		}
		e.client = client
	}
	if e.client.ActiveConnection().GetState() != connectivity.Ready {
		e.client.ActiveConnection().Connect()
		return nil, errBlind
	}
	return e.client, nil
}

// close ends the connection, for good.
func (e *eye) close() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.closed = true
	if e.client == nil {
		return nil
	}
	client := e.client
	e.client = nil
	return client.Close()
}
