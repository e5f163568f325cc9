package process

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lockfault/lockfault/internal/child"
	"github.com/lockfault/lockfault/internal/ports"
	"github.com/lockfault/lockfault/internal/rediscli"
)

// environment is what servers inherit: everything but what would be loaded
// into them, and in the language that errors are looked for in.
func environment() []string {
	var list []string
	for _, entry := range os.Environ() {
		if !strings.HasPrefix(entry, "LD_PRELOAD=") && !strings.HasPrefix(entry, "LC_ALL=") {
			list = append(list, entry)
		}
	}
	return append(list, "LC_ALL=C")
}

// errPortTaken says that the server ended because of its port.
var errPortTaken = errors.New("its port is taken")

// onPort calls start with a port, the one in *port first if there is one, and
// again with others as long as start finds its port taken.
func (h *Host) onPort(port *atomic.Int32, start func(port int) error) error {
	var err error
	for range ports.Tries {
		number := int(port.Load())
		if number == 0 {
			if number, err = h.ports.Take(); err != nil {
				return err
			}
			port.Store(int32(number))
		}
		if err = start(number); err == nil || !errors.Is(err, errPortTaken) {
			return err
		}
		// Whoever has it keeps it from the others of this host, too, until
		// it ends; then it is as good as any other.
		h.ports.GiveBack(number)
		port.Store(0)
	}
	return fmt.Errorf("tried %d ports, and each was taken before the server could listen: %w", ports.Tries, err)
}

// launch starts the command, a server or sentinel that will listen on the
// port, and returns when it answers. If that fails nothing is left running,
// and the error has the last line of its log; it wraps errPortTaken if that
// is why.
func (h *Host) launch(ctx context.Context, cmd *exec.Cmd, port int, password, log string) (*child.Proc, error) {
	var from int64 // where this life's log begins
	if info, err := os.Stat(log); err == nil {
		from = info.Size()
	}
	// The child gets the file itself: with a pipe, somebody had to read it.
	out, err := os.OpenFile(log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	cmd.Stdout, cmd.Stderr = out, out
	p, err := h.starter.Start(cmd)
	_ = out.Close() // nothing was written by this process
	if err != nil {
		return nil, err
	}
	err = awaitAnswer(ctx, p, port, password)
	if err == nil {
		return p, nil
	}
	ended := errors.Is(err, child.ErrEnded)
	if err := p.Kill(); err != nil {
		return nil, err
	}
	text, _ := readFrom(log, from) // no log: nothing to add
	if ended && strings.Contains(text, "Address already in use") {
		return nil, fmt.Errorf("%w: %d", errPortTaken, port)
	}
	if ended && p.Status() != nil {
		err = fmt.Errorf("%w (%w)", err, p.Status())
	}
	if line := lastLine(text); line != "" {
		return nil, fmt.Errorf("%w; the last line of its log: %s", err, line)
	}
	return nil, err
}

// awaitAnswer returns when the process answers, or with child.ErrEnded, or with
// why ctx is done.
func awaitAnswer(ctx context.Context, p *child.Proc, port int, password string) error {
	// Whoever else has the port may never answer: the process's end is enough.
	asking, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		select {
		case <-p.Ended():
			cancel()
		case <-asking.Done():
		}
	}()
	pause := time.Millisecond
	for {
		err := ping(asking, p, port, password)
		if err == nil || errors.Is(err, errChild) {
			return err
		}
		timer := time.NewTimer(pause)
		select {
		case <-timer.C:
		case <-p.Ended():
			timer.Stop()
			return child.ErrEnded
		case <-ctx.Done():
			timer.Stop()
			return fmt.Errorf("%w (%w)", context.Cause(ctx), err)
		}
		pause = min(pause*5/4, 10*time.Millisecond)
	}
}

// errChild says that a script started the server as its child, which would
// outlive a script that is killed.
var errChild = errors.New("its child answers in its place: a script that starts a server must do so with exec")

// ping returns nil if the server at that port answers PING and is that
// process, not somebody who took the port meanwhile.
func ping(ctx context.Context, p *child.Proc, port int, password string) error {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	// A dial of go-redis's own that fails is written to standard error.
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

// clientOptions are those of a client that asks one thing after the other.
func clientOptions(addr, password string) *redis.Options {
	o := rediscli.Options(addr)
	o.Password, o.PoolSize = password, 1
	return o
}

// logHead matches what stands in front of a line's text in a log, as in
// "123:M 01 Jan 2026 00:00:00.000 # ".
var logHead = regexp.MustCompile(`^\d+:[A-Z] .*?\d\d:\d\d:\d\d\.\d+ [.*#-] `)

// lastLine returns the last line of a log that is not empty, without its head.
func lastLine(text string) string {
	text = strings.TrimSpace(text)
	line := strings.TrimSpace(text[strings.LastIndexByte(text, '\n')+1:])
	line = logHead.ReplaceAllString(line, "")
	const limit = 300
	if len(line) > limit {
		line = line[:limit] + "…"
	}
	return strings.ToValidUTF8(line, "\uFFFD")
}

// readFrom returns what stands in the file from there on, or only its end if
// that is long.
func readFrom(file string, from int64) (string, error) {
	f, err := os.Open(file)
	if err != nil {
		return "", err
	}
	defer f.Close()
	const limit = 64 << 10
	if info, err := f.Stat(); err == nil {
		from = max(from, info.Size()-limit)
	}
	text, err := io.ReadAll(io.NewSectionReader(f, from, limit))
	return string(text), err
}
