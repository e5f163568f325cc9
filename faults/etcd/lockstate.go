package etcd

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/connectivity"

	"github.com/lockfault/lockfault/faults/real"
)

// errBlind reports that the inspector has no connection at the moment.
var errBlind = errors.New("it is not connected")

// Inspect implements [real.LockInspector]. A query is a prefix of keys with $1 for the lock's name:
// the oldest of these keys holds the lock, and its value is the owner. If the key has a lease, the
// hold ends with the lease.
func (s *server) Inspect(ctx context.Context, query, name string) (seen real.LockState, err error) {
	client, err := s.inspector()
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
			h.Ends, h.Bond = real.WithLease, strconv.FormatInt(kv.Lease, 16)
		}
		seen.Holders = append(seen.Holders, h)
	}
	return seen, nil
}

// Bound implements [real.SessionInspector]. The leader reports the state of a key's lease.
func (s *server) Bound(ctx context.Context, bond string) (bool, error) {
	client, err := s.inspector()
	if err != nil {
		return false, err
	}
	id, err := strconv.ParseInt(bond, 16, 64)
	if err != nil {
		return false, err
	}
	is, err := client.TimeToLive(ctx, clientv3.LeaseID(id))
	return err == nil && is.TTL >= 0, err // -1 after the lease has ended; 0 with less than 1 s left
}

// inspector returns the connection for inspections, or errBlind while it isn't ready.
func (s *server) inspector() (*clientv3.Client, error) {
	client, err := s.eye.Get(func() (*clientv3.Client, error) {
		return dial(context.Background(), s.Addr(), Service{}.Login(s.Spec.Password))
	})
	if err != nil {
		return nil, err
	}
	if conn := client.ActiveConnection(); conn.GetState() != connectivity.Ready {
		conn.Connect()
		return nil, errBlind
	}
	return client, nil
}

// dial returns a client of the member at an address alone, which logs in unless the login is empty.
func dial(ctx context.Context, addr string, login real.Login) (*clientv3.Client, error) {
	quick := backoff.Config{BaseDelay: 10 * time.Millisecond, Multiplier: 1.2, MaxDelay: 100 * time.Millisecond}
	return clientv3.New(clientv3.Config{
		Context: ctx, Endpoints: []string{addr}, Username: login.Username, Password: login.Password, DialTimeout: startLimit, Logger: zap.NewNop(),
		DialOptions: []grpc.DialOption{grpc.WithConnectParams(grpc.ConnectParams{Backoff: quick, MinConnectTimeout: time.Second})},
	})
}

// close closes the inspector's connection.
func (s *server) close() error { return s.eye.Close((*clientv3.Client).Close) }
