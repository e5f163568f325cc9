package daemon

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/lockfault/lockfault/faults/clock"
	"github.com/lockfault/lockfault/faults/real"
	"github.com/lockfault/lockfault/internal/ports"
	"github.com/lockfault/lockfault/internal/proc"
)

// A Program defines how a daemon is started. At most one goroutine calls its functions at a time.
type Program struct {
	// Command returns the command of a server that listens on a loopback port. Command makes the
	// files that the command line names; the daemon's directory exists.
	Command func(port int) (*exec.Cmd, error)
	// Answers returns nil if the server of that process is ready to serve at the port, and
	// otherwise an error. It is called repeatedly, unless the error wraps [ErrNever].
	Answers func(ctx context.Context, p *proc.Proc, port int) error
	// PortTaken is the log text of a server that ended because its port was taken; the server is
	// then started on another port. Empty means that the port never changes.
	PortTaken string
	// Reason returns the line of a log, which may be empty, that best explains why the server
	// ended, without details that errors need not show. Nil means the last line, [LastLine].
	Reason func(log string) string
	// Close is called when the daemon ends for good; nil does nothing.
	Close func() error
}

// ErrNever reports that a server will not answer as long as its process runs.
var ErrNever = errors.New("it is not the server that was started")

// A Daemon is a server process, which may have ended. It is safe for concurrent use.
type Daemon struct {
	host    *Host
	name    string
	program Program
	port    atomic.Int32              // 0 until it has a port
	running atomic.Pointer[proc.Proc] // the last process, which may not answer yet; nil before the first

	clock *clock.File // nil if the daemon has no clock of its own
	shim  string      // path of the library that moves the clock

	mu   sync.Mutex // held while the process changes
	proc *proc.Proc // nil until a process has answered for the first time
}

// Addr returns the daemon's host:port on loopback.
func (d *Daemon) Addr() string { return ports.Address(int(d.port.Load())) }

// Dir returns the daemon's directory, which is made before its first process.
func (d *Daemon) Dir() string { return filepath.Join(d.host.dir.Path(), d.name) }

// Log returns the path of the daemon's log.
func (d *Daemon) Log() string { return filepath.Join(d.Dir(), "log") }

// Pause stops the process, as [real.ManagedServer] specifies.
func (d *Daemon) Pause() error { return d.signal("pause", (*proc.Proc).Pause) }

// Resume continues the process, as [real.ManagedServer] specifies.
func (d *Daemon) Resume() error { return d.signal("resume", (*proc.Proc).Resume) }

// Kill ends the process, as [real.ManagedServer] specifies.
func (d *Daemon) Kill() error { return d.signal("kill", (*proc.Proc).Kill) }

func (d *Daemon) signal(what string, do func(*proc.Proc) error) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	err := proc.ErrEnded
	if d.proc != nil {
		err = do(d.proc)
	}
	if err != nil {
		return fmt.Errorf("%s: %s %s: %w", d.host.options.Name, what, d.name, err)
	}
	return nil
}

// Start starts the daemon for the first time, and returns when it answers. The caller must have
// called [Host.Enter]. If Start fails, no process is left running; the error gives the reason in
// one line, with the last line of the log, and does not name the daemon.
func (d *Daemon) Start(ctx context.Context) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.launch(ctx, true)
}

// Restart starts the daemon again after its process has ended. between is called before the start
// and may change the daemon's files; nil does nothing.
func (d *Daemon) Restart(ctx context.Context, between func() error) error {
	return d.restart(ctx, between, true)
}

// restart implements Restart. If waits is false, it does not wait for an answer.
func (d *Daemon) restart(ctx context.Context, between func() error, waits bool) error {
	wrap := func(err error) error {
		return fmt.Errorf("%s: restart %s: %w", d.host.options.Name, d.name, err)
	}
	ctx, leave, err := d.host.Enter(ctx)
	if err != nil {
		return wrap(err)
	}
	defer leave()
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.proc != nil && d.proc.Alive() {
		return wrap(errors.New("it is running: kill it first"))
	}
	if between != nil {
		if err := between(); err != nil {
			return wrap(err)
		}
	}
	if err := d.launch(ctx, waits); err != nil {
		return wrap(err)
	}
	return nil
}

// close ends the process for good.
func (d *Daemon) close() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	var errs []error
	if d.proc != nil {
		errs = append(errs, d.proc.Kill())
	}
	if d.program.Close != nil {
		errs = append(errs, d.program.Close())
	}
	if d.clock != nil {
		errs = append(errs, d.clock.Close())
	}
	return errors.Join(errs...)
}

// errPortTaken reports that the server ended because its port was taken.
var errPortTaken = errors.New("its port is taken")

// launch starts the process, on its previous port if possible, because other servers may have that
// address. If waits is set, launch waits for an answer. The caller holds mu.
func (d *Daemon) launch(ctx context.Context, waits bool) error {
	if err := os.MkdirAll(d.Dir(), 0o700); err != nil {
		return err
	}
	var err error
	for range ports.Tries {
		number := int(d.port.Load())
		if number == 0 {
			if number, err = d.host.ports.Take(); err != nil {
				return err
			}
			d.port.Store(int32(number))
		}
		if err = d.launchAt(ctx, number, waits); err == nil || !errors.Is(err, errPortTaken) {
			return err
		}
		// The process that has the port keeps it from the other servers of this host, too, until
		// that process ends; then the port is usable again.
		d.host.ports.GiveBack(number)
		d.port.Store(0)
	}
	return fmt.Errorf("tried %d ports, and each was taken before the server could listen: %w", ports.Tries, err)
}

func (d *Daemon) launchAt(ctx context.Context, port int, waits bool) error {
	cmd, err := d.program.Command(port)
	if err != nil {
		return err
	}
	if cmd.Dir == "" {
		cmd.Dir = d.Dir()
	}
	if d.clock != nil {
		cmd.Env = append(cmd.Environ(), clock.Env(d.shim, d.clock.Path())...)
	}
	var from int64 // where the log of this process begins
	if info, err := os.Stat(d.Log()); err == nil {
		from = info.Size()
	}
	// The child gets the file itself: a pipe would need a reader.
	out, err := os.OpenFile(d.Log(), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	cmd.Stdout, cmd.Stderr = out, out
	p, err := d.host.launcher.Start(cmd)
	_ = out.Close() // this process wrote nothing
	if err != nil {
		return err
	}
	d.running.Store(p)
	if !waits {
		d.proc = p
		return nil
	}
	if err = Await(ctx, p, func(ctx context.Context) error { return d.program.Answers(ctx, p, port) }); err == nil {
		if d.clock != nil && !d.clock.Loaded() {
			return errors.Join(fmt.Errorf("%w: %s doesn't load the library that moves it: take one that is linked dynamically", real.ErrNoClock, cmd.Path), p.Kill())
		}
		d.proc = p
		return nil
	}
	ended := errors.Is(err, proc.ErrEnded)
	if err := p.Kill(); err != nil {
		return err
	}
	text, _ := readFrom(d.Log(), from) // without a log there is nothing to add
	if taken := d.program.PortTaken; ended && taken != "" && strings.Contains(text, taken) {
		return fmt.Errorf("%w: %d", errPortTaken, port)
	}
	if ended && p.Status() != nil {
		err = fmt.Errorf("%w (%w)", err, p.Status())
	}
	if line := d.reason(text); line != "" {
		return fmt.Errorf("%w; its log says: %s", err, line)
	}
	return err
}

// Await calls answers repeatedly until it returns nil. It returns an error that wraps [ErrNever],
// [proc.ErrEnded] if the process has ended, or the cause of ctx's end with the last error of
// answers.
func Await(ctx context.Context, p *proc.Proc, answers func(context.Context) error) error {
	// Another process that has the port may never answer: this process's end is enough.
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
		err := answers(asking)
		if err == nil || errors.Is(err, ErrNever) {
			return err
		}
		select {
		case <-time.After(pause):
		case <-p.Ended():
			return proc.ErrEnded
		case <-ctx.Done():
			return fmt.Errorf("%w (%w)", context.Cause(ctx), err)
		}
		pause = min(pause*5/4, 10*time.Millisecond)
	}
}

// Await calls the function [Await] for the daemon's process, which must have been started. If the
// process has ended, the error contains the reason from its log.
func (d *Daemon) Await(ctx context.Context, answers func(context.Context) error) error {
	err := Await(ctx, d.proc, answers)
	if errors.Is(err, proc.ErrEnded) {
		text, _ := readFrom(d.Log(), 0) // without a log there is nothing to add
		return fmt.Errorf("%w; its log says: %s", err, d.reason(text))
	}
	return err
}

// LastLine returns the last nonempty line of a text.
func LastLine(text string) string {
	text = strings.TrimSpace(text)
	return strings.TrimSpace(text[strings.LastIndexByte(text, '\n')+1:])
}

// reason returns the line of a log that explains why its server ended, for errors.
func (d *Daemon) reason(log string) string {
	if d.program.Reason != nil {
		return Excerpt(d.program.Reason(log))
	}
	return Excerpt(LastLine(log))
}

// Excerpt returns a line of a log as errors show it: valid UTF-8, and cut to 300 bytes.
func Excerpt(line string) string {
	const limit = 300
	if len(line) > limit {
		line = line[:limit] + "…"
	}
	return strings.ToValidUTF8(line, "\uFFFD")
}

// readFrom returns the file's content from a byte on, or only the last 64 KiB of it.
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
