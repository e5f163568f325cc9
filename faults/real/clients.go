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

// process is a client and its current process.
type process struct {
	*topology.Client
	body   *Process
	spares []*Process // started in advance, for restarts of the client
}

// A Process is one run of a client's process. Its methods are safe for concurrent use.
type Process struct {
	// In and Out are the standard input and output of the process. Out ends after the process has
	// ended and all its output was read, or with the world.
	In  io.WriteCloser
	Out io.Reader
	// Home holds the addresses of the client's nodes.
	Home Home
	// Command is the command that was started.
	Command *exec.Cmd

	*proc.Proc
	watch  *watched // for a foreign process that belongs to a client; otherwise nil
	out    io.Closer
	errors *tail
}

// Why returns how the process ended and the end of its standard error. The process must have ended.
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

// StderrTail returns the end of what the process has written to standard error.
func (p *Process) StderrTail() string { return p.errors.String() }

// Home holds the addresses at which a client finds its nodes.
type Home struct {
	// Places are the addresses of the nodes, in the order of the nodes.
	Places []Place
	// Sentinels, if not empty, hold the addresses of the sentinels. They monitor the primary of the
	// only node under the name Master, and ask for Password, as the primary does. Addresses maps
	// the address of each server to the address at which the client reaches it.
	Sentinels        []string
	Master, Password string
	Addresses        map[string]string
}

// Place is the address of a node and the login for it.
type Place struct {
	Addr, Username, Password string
	// DB is the number of the database.
	DB int
}

// place returns the address at which a client finds a node: the link, with the link's own password.
func (w *World) place(l *wire) Place {
	if w.cfg.Service != nil { // the link of a service asks for no login; the server does
		login := l.server.login()
		return Place{Addr: l.link.Addr(), Username: login.Username, Password: login.Password}
	}
	return Place{Addr: l.link.Addr(), Password: w.password, DB: l.server.login().DB}
}

// Admit opens the links of a client whose process the world doesn't own, and returns the addresses
// of the nodes. Faults of that client's process are not possible.
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

// Spawn starts a client's process, or starts it again after a crash.
func (w *World) Spawn(name string) (*Process, error) {
	home, err := w.Admit(name)
	if err != nil {
		return nil, err
	}
	c := w.clients[name]
	if c.body != nil {
		c.body.hush() // closes the pipes of the previous process
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

// Prepare starts processes for the given number of future starts of a client: a start takes time,
// during which a script would wait.
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

// launch starts a client's process without assigning it to a client.
func (w *World) launch() (p *Process, err error) {
	cmd := w.cfg.Client()
	p = &Process{Command: cmd}
	if p.In, err = cmd.StdinPipe(); err != nil {
		return nil, err
	}
	// StdoutPipe would close with the process, before its last output may have been read.
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
	_, _ = to.Close(), errs.Close() // the process has its own copies
	if err != nil {
		return nil, errors.Join(err, out.Close(), p.errors.Close())
	}
	return p, nil
}

// hush closes the pipes of a process that has ended.
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

// did adds the action and the client's name to the error of an action on the process.
func (c *process) did(what string, err error) error {
	if err != nil {
		err = fmt.Errorf("%s %s: %w", what, c.Name, err)
	}
	return err
}

// end kills the client's processes for good.
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
