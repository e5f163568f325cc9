package real

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"strings"
	"time"

	"github.com/lockfault/lockfault/faults"
	"github.com/lockfault/lockfault/faults/topology"
	"github.com/lockfault/lockfault/internal/proc"
)

// process is a client's process, in its present life.
type process struct {
	*topology.Client
	body   *Process
	spares []*Process // for its next lives
}

// A Process is one life of a client's process. Its methods may be called by
// any goroutine.
type Process struct {
	// In and Out are its standard streams. Out ends with the process, when
	// all that it wrote was read, and with the world.
	In  io.WriteCloser
	Out io.Reader
	// Home says where it finds its nodes.
	Home Home
	// Command is what was started.
	Command *exec.Cmd

	*proc.Proc
	watch  *watched // of a foreign one that is somebody; else nil
	out    io.Closer
	errors *tail
}

// Why returns how the process ended and what it last wrote on standard error.
// It must have ended.
func (p *Process) Why() error {
	why, text := p.Status(), p.errors.String()
	if why == nil {
		why = errors.New("exit status 0")
	}
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, "panic: ") || strings.HasPrefix(line, "fatal error: ") {
			why = fmt.Errorf("%s (%w)", strings.TrimSpace(line), why)
			break
		}
	}
	if text != "" {
		why = fmt.Errorf("%w\n\n%s", why, text)
	}
	return why
}

// StderrTail returns the end of what it has written on standard error.
func (p *Process) StderrTail() string { return p.errors.String() }

// Home says where a client finds its nodes.
type Home struct {
	// Places are the nodes' addresses, in their order.
	Places []Place
	// Sentinels, if there are any, know the address of the only node's
	// primary under the name Master, and ask for Password as it does; Ways
	// says at which address the client reaches each server.
	Sentinels        []string
	Master, Password string
	Addresses        map[string]string
}

// Place is where a client finds a node.
type Place struct {
	Addr, Username, Password string
	// DB is the number of the database.
	DB int
}

// place is where a client finds a node: at the link, which asks for a password
// of its own.
func (w *World) place(l *wire) Place {
	if w.cfg.Service != nil { // the link asks for nothing: the server does
		login := l.server.login()
		return Place{Addr: l.link.Addr(), Username: login.Username, Password: login.Password}
	}
	return Place{Addr: l.link.Addr(), Password: w.password, DB: l.server.login().DB}
}

// Admit lets in a client whose process is not the world's, and says where it
// finds its nodes. Faults of its process are not possible.
func (w *World) Admit(name string) (Home, error) {
	if w.closed {
		return Home{}, fmt.Errorf("real: client %s: the world: %w", name, net.ErrClosed)
	}
	if w.clients[name] == nil {
		w.clients[name] = &process{Client: w.top.Client(name)}
	}
	links, err := w.openLinks(name)
	if err != nil {
		return Home{}, err
	}
	home := Home{Sentinels: w.sentinels, Master: master, Password: w.password, Addresses: map[string]string{}}
	for _, l := range links {
		if l.fixed {
			home.Addresses[l.server.addr] = l.link.Addr()
			continue
		}
		home.Places = append(home.Places, w.place(l))
	}
	return home, nil
}

// Spawn starts a client's process, or starts it anew after a crash.
func (w *World) Spawn(name string) (*Process, error) {
	home, err := w.Admit(name)
	if err != nil {
		return nil, err
	}
	c := w.clients[name]
	if c.body != nil {
		c.body.hush() // its former life says nothing more
	}
	if len(c.spares) == 0 {
		if err := w.Prepare(name, 1); err != nil {
			return nil, err
		}
	}
	c.body, c.spares = c.spares[0], c.spares[1:]
	c.body.Home = home
	if w.cfg.Foreign {
		c.body.watch = w.oversee(name, c.body.Proc)
	}
	return c.body, nil
}

// Prepare starts processes for so many lives of a client that are yet to come:
// to start one takes its time, in which a script waits.
func (w *World) Prepare(name string, lives int) error {
	c := w.clients[name]
	for range lives {
		p, err := w.launch()
		if err != nil {
			return fmt.Errorf("real: client %s: starting its process: %w", name, err)
		}
		c.spares = append(c.spares, p)
	}
	return nil
}

// launch starts a client's process, which doesn't know yet whose.
func (w *World) launch() (p *Process, err error) {
	cmd := w.cfg.Client()
	p = &Process{Command: cmd}
	if p.In, err = cmd.StdinPipe(); err != nil {
		return nil, err
	}
	// Not StdoutPipe: that closes with the process, whose last words may not
	// have been read yet.
	out, to, err := os.Pipe()
	if err != nil {
		return nil, errors.Join(err, p.In.Close())
	}
	p.Out, p.out = out, out
	var errs *os.File
	if p.errors, errs, err = newTail(); err != nil {
		return nil, errors.Join(err, p.In.Close(), out.Close(), to.Close())
	}
	cmd.Stdout, cmd.Stderr = to, errs
	p.Proc, err = w.launcher.Start(cmd)
	_, _ = to.Close(), errs.Close() // the process has its own
	if err != nil {
		return nil, errors.Join(err, out.Close(), p.errors.Close())
	}
	return p, nil
}

// hush ends the pipes of a process that has ended.
func (p *Process) hush() { _, _ = p.out.Close(), p.errors.Close() }

// Client implements [faults.World].
func (w *World) Client(name string) faults.ClientState {
	c := w.clients[name]
	if c == nil {
		return faults.ClientState{}
	}
	state := w.top.State(c.Client)
	for on, wire := range w.links {
		if on.client != name {
			continue
		}
		for _, c := range wire.conns {
			state.UnderWay += len(c.requests.coming) + len(c.replies.coming) + c.waited()
			for _, is := range []bool{c.requests.Stuck != nil, c.replies.Stuck != nil, c.awaited != nil} {
				if is {
					state.UnderWay++
				}
			}
			if m := c.awaited; m != nil && !c.gone && !c.server.Paused && !blocks(m.words) {
				state.InHand++
			}
		}
		for _, m := range wire.server.door {
			if m.conn.wire == wire && !m.conn.gone {
				state.UnderWay++
			}
		}
	}
	return state
}

// Holds implements [faults.World].
func (w *World) Holds(client, node string) bool { return w.top.Holds(client, node) }

// ClientTime implements [faults.World].
func (w *World) ClientTime(name string) time.Time {
	now := time.Now()
	if c := w.clients[name]; c != nil {
		now = now.Add(c.Skew)
	}
	return now
}

// did says what was done to the process, if that failed.
func (c *process) did(what string, err error) error {
	if err != nil {
		err = fmt.Errorf("%s %s: %w", what, c.Name, err)
	}
	return err
}

// end ends the process for good.
func (c *process) end() error {
	var errs []error
	for _, p := range append(c.spares, c.body) {
		if p != nil {
			errs = append(errs, p.Kill())
			p.hush()
		}
	}
	return errors.Join(errs...)
}
