// Package natsserver runs a NATS JetStream server within this program, for a queue on one machine
// and for tests. A queue on existing NATS servers does not need the package. The server stores its
// data on this machine only: a replicated queue needs a NATS cluster.
package natsserver

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"github.com/nats-io/nats-server/v2/server"

	"github.com/lockfault/lockfault/internal/below"
	"github.com/lockfault/lockfault/internal/flock"
	"github.com/lockfault/lockfault/internal/queue"
	"github.com/lockfault/lockfault/internal/queue/nats"
)

// credentialsFile is the name of the credentials file in a server's directory.
const credentialsFile = "queue.key"

// Engine extends [nats.Engine] with a server. The zero value is ready for use.
type Engine struct{ nats.Engine }

const (
	// start is the time that a server has to accept connections.
	start = 30 * time.Second
	// syncs is the interval at which stored data is synced to the disk. Items and answers lost in a
	// crash are played again.
	syncs = 10 * time.Second
)

// Serve implements [queue.Host].
func (Engine) Serve(ctx context.Context, o queue.ServerOptions, ready func(url, credentials string)) error {
	switch {
	case o.Config == "" && o.Credentials == "":
		o.Credentials = filepath.Join(o.Dir, credentialsFile)
	case o.Config != "" && o.Credentials != "":
		return queue.BadAddress("credentials: the config file says who is let in: leave one of the two out")
	}
	options, err := configure(o)
	if err != nil {
		return err
	}
	// Another user who may write to a parent directory can redirect the server, or read its data.
	if err := below.CheckParents(options.StoreDir); err != nil {
		return queue.BadAddress("directory: %w", err)
	}
	if err := os.MkdirAll(options.StoreDir, 0o700); err != nil {
		return err
	}
	if o.Config == "" {
		if err := nats.CheckDir(options.StoreDir); err != nil {
			return queue.BadAddress("directory: %w", err)
		}
	}
	unlock, err := lock(options.StoreDir)
	if err != nil {
		return err
	}
	defer unlock()
	if o.Config == "" {
		user, err := nats.NewCredentials(o.Credentials)
		if err != nil {
			return queue.BadAddress("credentials: %w", err)
		}
		options.Nkeys = []*server.NkeyUser{{Nkey: user}}
	}
	if options.Port > 0 { // NewServer would retry for a long time, and not report the reason
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
	if !s.JetStreamEnabled() {
		return fmt.Errorf("the server can't keep things in %s: may it write there?", options.StoreDir)
	}
	ready(s.ClientURL(), o.Credentials)
	select {
	case <-ctx.Done():
		return nil
	case <-ended:
		return errors.New("the server has ended by itself")
	}
}

// lockFile is the file in a server's directory that the server locks.
const lockFile = "lockfault.lock"

// lock locks a server's directory, because two servers would write to the same files.
func lock(dir string) (unlock func(), err error) {
	in, err := below.Open(dir)
	if err != nil {
		return nil, err
	}
	defer in.Close()
	f, err := in.Open(lockFile, os.O_RDWR)
	if errors.Is(err, fs.ErrNotExist) {
		f, err = in.Create(lockFile, 0o600)
	}
	if err != nil {
		return nil, err
	}
	if err := flock.Take(f); err != nil {
		f.Close()
		return nil, fmt.Errorf("another queue keeps things in %s: name another directory", dir)
	}
	return func() { f.Close() }, nil
}

// configure returns the server's options, or an error if they are invalid or unsafe.
func configure(o queue.ServerOptions) (*server.Options, error) {
	options := &server.Options{Host: "127.0.0.1", NoSigs: true, NoLog: true} // errors are reported to the caller instead
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
			options.Host = "127.0.0.1" // the server's default is every address
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
	if options.Port == 0 {
		options.Port = server.DEFAULT_PORT
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
	if where := open(options, o.Config == ""); where != "" {
		return nil, queue.BadAddress("%s is not this machine alone, and anybody would be let in: give a config file that says who is, by authorization, accounts or an operator, or leave it out", where)
	}
	return options, nil
}

// open returns an address at which other machines can connect without authentication, or "" if
// there is none. credentials reports whether the server requires lockfault's credentials.
func open(o *server.Options, credentials bool) string {
	type door struct {
		name, host string
		port       int
		asked      bool
	}
	asked := credentials || guarded(o)
	for _, d := range []door{
		{"", o.Host, o.Port, asked},
		{"websocket ", o.Websocket.Host, o.Websocket.Port, asked && o.Websocket.NoAuthUser == "" || o.Websocket.Username != "" || o.Websocket.Token != ""},
		{"mqtt ", o.MQTT.Host, o.MQTT.Port, asked && o.MQTT.NoAuthUser == "" || o.MQTT.Username != "" || o.MQTT.Token != ""},
		{"leafnodes ", o.LeafNode.Host, o.LeafNode.Port, asked || o.LeafNode.Username != "" || len(o.LeafNode.Users) > 0},
		{"cluster ", o.Cluster.Host, o.Cluster.Port, o.Cluster.Username != "" || o.Cluster.TLSConfig != nil},
		{"gateway ", o.Gateway.Host, o.Gateway.Port, o.Gateway.Username != "" || o.Gateway.TLSConfig != nil},
		{"http ", o.HTTPHost, max(o.HTTPPort, o.HTTPSPort), asked}, // this port is read-only
		{"profile ", o.Host, o.ProfPort, false},
	} {
		if d.port != 0 && !d.asked && !loopback(d.host) {
			return fmt.Sprintf("%s%s", d.name, net.JoinHostPort(d.host, strconv.Itoa(d.port)))
		}
	}
	return ""
}

// loopback reports whether a host is the loopback interface.
func loopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// guarded reports whether a server requires authentication. An empty password does not count, since
// a password from a variable may be empty.
func guarded(o *server.Options) bool {
	switch {
	case o.NoAuthUser != "":
		return false
	case o.TLSConfig != nil && o.TLSVerify:
		return true
	case o.Username != "" && o.Password == "", slices.ContainsFunc(o.Users, func(u *server.User) bool { return u.Password == "" }):
		return false
	}
	return o.Username != "" || o.Authorization != "" || len(o.Users) > 0 || len(o.Nkeys) > 0 || len(o.TrustedOperators) > 0 || len(o.TrustedKeys) > 0 ||
		o.AuthCallout != nil || o.CustomClientAuthentication != nil
}
