// Package natsd is a server of NATS JetStream within this program, for a queue on one machine
// and for tests. Who has servers already needs none of it.
package natsd

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"
	"time"

	"github.com/nats-io/nats-server/v2/server"

	"github.com/lockfault/lockfault/queue"
	"github.com/lockfault/lockfault/queue/nats"
)

// Engine is that of [nats.Engine], which can be a server too. Its zero value is ready.
type Engine struct{ nats.Engine }

const (
	// start is how long a server may take until it takes connections.
	start = 30 * time.Second
	// syncs is how often what is kept is synced to the disk: what a queue loses is played again.
	syncs = 10 * time.Second
)

// Serve implements [queue.Host].
func (Engine) Serve(ctx context.Context, o queue.ServerOptions, ready func(url string)) error {
	options, err := configure(o)
	if err != nil {
		return err
	}
	if options.Port > 0 { // the server would try for long, and not say why
		l, err := net.Listen("tcp", net.JoinHostPort(options.Host, strconv.Itoa(options.Port)))
		if err != nil {
			return fmt.Errorf("the server can't take connections: %w", err)
		}
		l.Close()
	}
	s, err := server.NewServer(options)
	if err != nil {
		return queue.BadAddress("%w", err)
	}
	s.ConfigureLogger()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		s.Start()
		s.WaitForShutdown()
	}()
	defer func() {
		s.Shutdown()
		<-ended
	}()
	if !s.ReadyForConnections(start) {
		return fmt.Errorf("the server takes no connections at %s", net.JoinHostPort(options.Host, strconv.Itoa(options.Port)))
	}
	ready(s.ClientURL())
	select {
	case <-ctx.Done():
		return nil
	case <-ended:
		return errors.New("the server has ended by itself")
	}
}

// configure returns the server's options, if they are safe.
func configure(o queue.ServerOptions) (*server.Options, error) {
	options := &server.Options{Host: "127.0.0.1", NoSigs: true, NoLog: true} // its user hears what matters
	if o.Config != "" {
		if _, err := os.Stat(o.Config); err != nil {
			return nil, queue.BadAddress("config: %w", err)
		}
		var err error
		if options, err = server.ProcessConfigFile(o.Config); err != nil {
			return nil, queue.BadAddress("config: %w", err)
		}
		options.NoSigs = true
		if options.Host == "" {
			options.Host = "127.0.0.1" // not every address, as the server takes it
		}
	}
	if o.Listen != "" {
		host, port, err := net.SplitHostPort(o.Listen)
		number, wrong := strconv.Atoi(port)
		switch {
		case err != nil || wrong != nil || number < 0 || number > 65535:
			return nil, queue.BadAddress("listen: give HOST:PORT, such as 127.0.0.1:4222")
		case host == "":
			return nil, queue.BadAddress("listen: %s is every address of this machine: give one, such as 127.0.0.1%[1]s", o.Listen)
		}
		if options.Host, options.Port = host, number; number == 0 {
			options.Port = server.RANDOM_PORT
		}
	}
	if o.Dir != "" {
		options.StoreDir = o.Dir
	}
	if options.StoreDir == "" {
		return nil, queue.BadAddress("the server needs a directory to keep things in")
	}
	options.JetStream = true
	if options.SyncInterval == 0 {
		options.SyncInterval = syncs
	}
	if !loopback(options.Host) && !guarded(options) {
		return nil, queue.BadAddress("%s is not this machine alone, and anybody would be let in: give a config file that says who is, by authorization, accounts or an operator", options.Host)
	}
	return options, nil
}

// loopback reports whether a host is this machine alone.
func loopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// guarded reports whether a server asks who comes.
func guarded(o *server.Options) bool {
	return o.Username != "" || o.Authorization != "" || len(o.Users) > 0 || len(o.Nkeys) > 0 || len(o.TrustedOperators) > 0 || len(o.TrustedKeys) > 0 ||
		o.AuthCallout != nil || o.CustomClientAuthentication != nil || o.TLSConfig != nil && o.TLSVerify
}
