package real

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/lockfault/lockfault/checker"
	"github.com/lockfault/lockfault/faults"
	"github.com/lockfault/lockfault/internal/child"
)

// process is a client's process, in its present life.
type process struct {
	name   string
	state  faults.ClientState
	since  time.Time     // when the present pause began
	skew   time.Duration // of its wall clock
	pauses []pause
	body   *Process
}

// pause is when a process was stopped, on the clock of [child.SinceBoot]; to is
// 0 while it is.
type pause struct{ from, to time.Duration }

// A Process is one life of a client's process. Its methods may be called by
// any goroutine.
type Process struct {
	// In and Out are its standard streams. Out ends with the process, when
	// all that it wrote was read, and with the world.
	In  io.WriteCloser
	Out io.Reader
	// Home says where it finds its nodes.
	Home Home

	*child.Proc
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

// Home says where a client finds its nodes.
type Home struct {
	// Places are the nodes' addresses, in their order.
	Places []Place
	// Sentinels, if there are any, know the address of the only node's
	// primary under the name Master, and ask for Password as it does; Ways
	// says at which address the client reaches each server.
	Sentinels        []string
	Master, Password string
	Ways             map[string]string
}

// Place is where a client finds a node.
type Place struct {
	Addr, Username, Password string
	// DB is the number of the database.
	DB int
}

func (w *World) place(l *wire) Place {
	login := l.server.login()
	return Place{Addr: l.link.Addr(), Username: login.Username, Password: login.Password, DB: login.DB}
}

// Admit lets in a client whose process is not the world's, and says where it
// finds its nodes. Faults of its process are not possible.
func (w *World) Admit(name string) (Home, error) {
	if w.closed {
		return Home{}, fmt.Errorf("real: client %s: the world: %w", name, net.ErrClosed)
	}
	if w.clients[name] == nil {
		w.clients[name] = &process{name: name}
	}
	links, err := w.openLinks(name)
	if err != nil {
		return Home{}, err
	}
	home := Home{Sentinels: w.sentinels, Master: master, Password: w.password, Ways: map[string]string{}}
	for _, l := range links {
		if l.fixed {
			home.Ways[l.server.addr] = l.link.Addr()
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
		_ = c.body.out.Close() // of its former life, which says nothing more
	}
	cmd := w.cfg.Client()
	p := &Process{Home: home, errors: &tail{}}
	if p.In, err = cmd.StdinPipe(); err != nil {
		return nil, fmt.Errorf("real: client %s: %w", name, err)
	}
	// Not StdoutPipe: that closes with the process, whose last words may not
	// have been read yet.
	out, to, err := os.Pipe()
	if err != nil {
		return nil, errors.Join(fmt.Errorf("real: client %s: %w", name, err), p.In.Close())
	}
	p.Out, p.out = out, out
	cmd.Stdout, cmd.Stderr = to, p.errors
	// Once it has ended, nobody else's copy of its standard error keeps us.
	cmd.WaitDelay = time.Second
	p.Proc, err = w.launcher.Start(cmd)
	_ = to.Close() // the process has its own
	if err != nil {
		return nil, errors.Join(fmt.Errorf("real: client %s: starting its process: %w", name, err), out.Close())
	}
	c.body = p
	return p, nil
}

// Client implements [faults.World].
func (w *World) Client(name string) faults.ClientState {
	c := w.clients[name]
	if c == nil {
		return faults.ClientState{}
	}
	state := c.state
	if state.Paused {
		state.PausedFor += time.Since(c.since)
	}
	state.Held = 0
	for _, m := range w.held {
		if m.conn.wire.client == name {
			state.Held++
		}
	}
	state.UnderWay = w.ajar.underWay(name)
	for on, wire := range w.links {
		if on.client != name {
			continue
		}
		for _, c := range wire.conns {
			state.UnderWay += len(c.requests.coming) + len(c.replies.coming)
			for _, m := range []*message{c.requests.stuck, c.replies.stuck, c.awaited} {
				if m != nil {
					state.UnderWay++
				}
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

// Wall implements [faults.World].
func (w *World) Wall(name string) time.Time {
	now := time.Now()
	if c := w.clients[name]; c != nil {
		now = now.Add(c.skew)
	}
	return now
}

func (w *World) applyToClient(f faults.Fault, c *process) error {
	if c == nil || c.body == nil {
		return fmt.Errorf("real: %q: that client was never started here", f)
	}
	tell := func(kind checker.Kind) { w.tell(checker.Event{Kind: kind, Client: c.name}) }
	switch f := f.(type) {
	case faults.PauseClient:
		if c.state.Paused || c.state.Crashed {
			return nil
		}
		c.pauses = append(c.pauses, pause{from: child.SinceBoot()})
		if err := c.body.Pause(); err != nil {
			return fmt.Errorf("real: pausing %s: %w", c.name, err)
		}
		tell(checker.Pause)
		c.state.Paused, c.since = true, time.Now()
	case faults.ResumeClient:
		if !c.state.Paused {
			return nil
		}
		tell(checker.Resume)
		c.resume()
		if err := c.body.Resume(); err != nil {
			return fmt.Errorf("real: resuming %s: %w", c.name, err)
		}
		// It wakes up a moment after it was told to.
		c.pauses[len(c.pauses)-1].to = child.SinceBoot() + trifle
	case faults.CrashClient:
		if c.state.Crashed {
			return nil
		}
		if err := c.body.Kill(); err != nil {
			return fmt.Errorf("real: crashing %s: %w", c.name, err)
		}
		tell(checker.Crash)
		c.state.Crashed = true
		if c.state.Paused {
			c.resume()
		}
	case faults.RestartClient:
		if !c.state.Crashed {
			return nil
		}
		tell(checker.Restart)
		c.state.Crashed = false
	case faults.ClientClock:
		w.fault(f, c.name, "")
		c.skew += f.By.Of(w.cfg.TTL)
	}
	return nil
}

func (c *process) resume() {
	c.state.Paused = false
	c.state.PausedFor += time.Since(c.since)
}

// end ends the process for good.
func (c *process) end() error {
	if c.body == nil {
		return nil
	}
	err := c.body.Kill()
	_ = c.body.out.Close() // nobody reads on
	return err
}

// tail keeps the end of what is written to it. The zero value is empty. Safe
// for concurrent use.
type tail struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

const tailLimit = 16 << 10

// Write never fails.
func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.buf.Write(p)
	if over := t.buf.Len() - tailLimit; over > 0 {
		t.buf.Next(over)
	}
	return len(p), nil
}

func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return strings.TrimSpace(strings.ToValidUTF8(t.buf.String(), "\uFFFD"))
}
