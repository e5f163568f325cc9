package process

import (
	"context"
	"errors"
	"fmt"
	"net"
	"regexp"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lockfault/lockfault/faults/real/daemon"
	"github.com/lockfault/lockfault/internal/ports"
	"github.com/lockfault/lockfault/internal/proc"
	"github.com/lockfault/lockfault/internal/rediscli"
)

// environment returns the environment of servers: this process's, without libraries to preload, and
// with the locale in which errors are matched.
func environment() []string {
	return daemon.Environment([]string{"LD_PRELOAD=", "LC_ALL="}, "LC_ALL=C")
}

// program returns what the programs of servers and sentinels with that password share.
func program(password string) daemon.Program {
	return daemon.Program{
		Answers:   func(ctx context.Context, p *proc.Proc, port int) error { return ping(ctx, p, port, password) },
		PortTaken: "Address already in use",
		Reason:    func(log string) string { return logHead.ReplaceAllString(daemon.LastLine(log), "") },
	}
}

// errChild reports that a script started the server as its child, which would survive the kill of
// the script.
var errChild = fmt.Errorf("%w: its child answers in its place: a script that starts a server must do so with exec", daemon.ErrNever)

// ping returns nil if the server at the port answers PING and is that process, not another process
// that took the port meanwhile.
func ping(ctx context.Context, p *proc.Proc, port int, password string) error {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	// go-redis writes its own failed dials to standard error.
	var d net.Dialer
	conn, err := d.DialContext(ctx, "tcp", ports.Address(port))
	if err != nil {
		return err
	}
	defer conn.Close()
	options := clientOptions(ports.Address(port), password)
	options.Dialer = func(context.Context, string, string) (net.Conn, error) { return conn, nil }
	c := redis.NewClient(options)
	defer c.Close()
	if err := c.Ping(ctx).Err(); err != nil {
		return err
	}
	info, err := rediscli.Info(ctx, c, "server")
	if err != nil {
		return err
	}
	pid, err := strconv.Atoi(info["process_id"])
	switch {
	case err != nil:
		return fmt.Errorf("its process_id: %w", err)
	case p.Leads(pid):
		return errChild
	case pid != p.PID():
		return errors.New("another server has its port")
	}
	return nil
}

// clientOptions returns the options of a client with one connection.
func clientOptions(addr, password string) *redis.Options {
	o := rediscli.Options(addr)
	o.Password, o.PoolSize = password, 1
	return o
}

// logHead matches the prefix of a log line, such as "123:M 01 Jan 2026 00:00:00.000 # ".
var logHead = regexp.MustCompile(`^\d+:[A-Z] .*?\d\d:\d\d:\d\d\.\d+ [.*#-] `)
