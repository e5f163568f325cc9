package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/lockfault/lockfault/internal/ports"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// cluster is a NATS cluster on this machine.
type cluster struct {
	urls           string
	creds          string // path of the credentials file
	configs        []string
	user, password string
	nc             *nats.Conn
}

// newCluster writes the configurations of a cluster of n servers. newCluster does not start them.
func newCluster(dir string, n int) (*cluster, error) {
	var at []int
	for free := ports.New(); len(at) < 2*n; {
		port, err := free.Take()
		if err != nil {
			return nil, err
		}
		at = append(at, port)
	}
	const user, password = "drill", "of three servers"
	var routes, urls []string
	for i := range n {
		routes = append(routes, fmt.Sprintf("nats://127.0.0.1:%d", at[n+i]))
		urls = append(urls, fmt.Sprintf("nats://127.0.0.1:%d", at[i]))
	}
	c := &cluster{urls: strings.Join(urls, ","), creds: filepath.Join(dir, "creds"), user: user, password: password}
	if err := os.WriteFile(c.creds, []byte(user+":"+password+"\n"), 0o600); err != nil {
		return nil, err
	}
	for i := range n {
		name := fmt.Sprintf("s%d", i+1)
		text := fmt.Sprintf(`server_name: %s
listen: "127.0.0.1:%d"
authorization { user: %q, password: %q }
jetstream { store_dir: %q }
cluster { name: drill, listen: "127.0.0.1:%d", routes: ["%s"] }
`, name, at[i], user, password, filepath.Join(dir, name), at[n+i], strings.Join(routes, `", "`))
		path := filepath.Join(dir, name+".conf")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			return nil, err
		}
		c.configs = append(c.configs, path)
	}
	return c, nil
}

// patience is the longest time in which the servers must form a cluster again, on a busy machine.
const patience = 3 * time.Minute

// ready waits until the servers are a cluster with a leader.
func (c *cluster) ready(ctx context.Context) error {
	return until(ctx, "the servers are no cluster", func(ctx context.Context) (err error) {
		if c.nc == nil {
			if c.nc, err = nats.Connect(c.urls, nats.UserInfo(c.user, c.password), nats.MaxReconnects(-1), nats.ReconnectWait(100*time.Millisecond)); err != nil {
				return err
			}
		}
		js, err := jetstream.New(c.nc)
		if err == nil {
			_, err = js.AccountInfo(ctx)
		}
		return err
	})
}

// current waits until every server has all streams and consumers completely.
func (c *cluster) current(ctx context.Context) error {
	js, err := jetstream.New(c.nc)
	if err != nil {
		return err
	}
	return until(ctx, "the servers don't all have what there is", func(ctx context.Context) error {
		list := js.ListStreams(ctx)
		n := 0
		for info := range list.Info() {
			n++
			if err := whole(info.Config.Name, info.Cluster); err != nil {
				return err
			}
			stream, err := js.Stream(ctx, info.Config.Name)
			if err != nil {
				return err
			}
			consumers := stream.ListConsumers(ctx)
			for info := range consumers.Info() {
				if err := whole(info.Name, info.Cluster); info.Config.Durable != "" && err != nil {
					return err
				}
			}
			if err := consumers.Err(); err != nil {
				return err
			}
		}
		if n == 0 && list.Err() == nil {
			return errors.New("there are no streams")
		}
		return list.Err()
	})
}

// whole returns an error if a stream or consumer is not complete on all servers.
func whole(name string, info *jetstream.ClusterInfo) error {
	if info == nil || info.Leader == "" || len(info.Replicas) != servers-1 {
		return fmt.Errorf("%s has no leader, or is not on all: %+v", name, info)
	}
	for _, r := range info.Replicas {
		if !r.Current || r.Offline || r.Lag > 0 {
			return fmt.Errorf("%s: %s is behind", name, r.Name)
		}
	}
	return nil
}

// until calls try repeatedly until it returns nil. After patience it returns the last error, with
// otherwise in front.
func until(ctx context.Context, otherwise string, try func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for {
		within, cancel := context.WithTimeout(ctx, 5*time.Second)
		err := try(within)
		cancel()
		if err == nil {
			return nil
		}
		select {
		case <-time.After(100 * time.Millisecond):
		case <-ctx.Done():
			return fmt.Errorf("%s: %w", otherwise, err)
		}
	}
}
