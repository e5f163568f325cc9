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

// A Program says how a daemon is started. Its functions are called by one goroutine at a time.
type Program struct {
	// Command returns the command of a server that will listen on the port of loopback. It makes the
	// files that it names; the daemon's directory is there.
	Command func(port int) (*exec.Cmd, error)
	// Answers returns nil if the server of that process is there at the port, ready to serve, or
	// why not yet. It is asked again and again. Where the error wraps [ErrNever] it isn't.
	Answers func(ctx context.Context, p *proc.Proc, port int) error
	// PortTaken is what the log says of a server that ended because another had its port, for it to be
	// tried on another one. Empty means that it keeps the one it has.
	PortTaken string
	// Reason returns the line of a log, which may be empty, that says best why the server ended, without what
	// errors need not show; nil means the last one, [LastLine].
	Reason func(log string) string
	// Close is called when the daemon ends for good; nil does nothing.
	Close func() error
}

// ErrNever says that a server will not answer as long as its process runs.
var ErrNever = errors.New("it is not the server that was started")

// A Daemon is a process that serves something, or where one was. Safe for concurrent use.
type Daemon struct {
	host    *Host
	name    string
	program Program
	port    atomic.Int32              // 0 until it has one
	running atomic.Pointer[proc.Proc] // its last process, which may not answer yet; nil before the first

	clock *clock.File // nil if it has none of its own
	shim  string      // the library that gives it one

	mu   sync.Mutex // held while something about the process changes
	proc *proc.Proc // nil until it has answered for the first time
}

// Addr is its host:port on loopback.
func (d *Daemon) Addr() string { return ports.Address(int(d.port.Load())) }

// Dir is its directory, which is made before its first process.
func (d *Daemon) Dir() string { return filepath.Join(d.host.dir.Path(), d.name) }

// Log is the file that it logs to.
func (d *Daemon) Log() string { return filepath.Join(d.Dir(), "log") }

// Pause stops it, as [real.ManagedServer] says.
func (d *Daemon) Pause() error { return d.signal("pause", (*proc.Proc).Pause) }

// Resume lets it go on, as [real.ManagedServer] says.
func (d *Daemon) Resume() error { return d.signal("resume", (*proc.Proc).Resume) }

// Kill ends it, as [real.ManagedServer] says.
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

// Start starts it for the first time, within a call that the host was told of by [Host.Enter], and
// returns when it answers. If that fails nothing is left running; the error says why, in one
// line with the last one of its log, and not whose it is.
func (d *Daemon) Start(ctx context.Context) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.launch(ctx, true)
}

// Restart starts it again when it has ended. Between, something may be done to its files; nil does
// nothing.
func (d *Daemon) Restart(ctx context.Context, between func() error) error {
	return d.restart(ctx, between, true)
}

// restart is Restart, and waits for it to answer or not.
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

// close ends the process.
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

// errPortTaken says that the server ended because of its port.
var errPortTaken = errors.New("its port is taken")

// launch starts the process, on the port that it had if it can: others may know it by that; and waits for it to answer, or not. The caller
// holds mu.
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
		// Whoever has it keeps it from the others of this host, too, until
		// it ends; then it is as good as any other.
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
	var from int64 // where this life's log begins
	if info, err := os.Stat(d.Log()); err == nil {
		from = info.Size()
	}
	// The child gets the file itself: with a pipe, somebody had to read it.
	out, err := os.OpenFile(d.Log(), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	cmd.Stdout, cmd.Stderr = out, out
	p, err := d.host.launcher.Start(cmd)
	_ = out.Close() // nothing was written by this process
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
	text, _ := readFrom(d.Log(), from) // no log: nothing to add
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

// Await asks again and again, and returns nil when there is no error any more, or what went wrong: an error
// that wraps [ErrNever], [proc.ErrEnded] when the process has ended, or why ctx is done and the last answer.
func Await(ctx context.Context, p *proc.Proc, answers func(context.Context) error) error {
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
		err := answers(asking)
		if err == nil || errors.Is(err, ErrNever) {
			return err
		}
		timer := time.NewTimer(pause)
		select {
		case <-timer.C:
		case <-p.Ended():
			timer.Stop()
			return proc.ErrEnded
		case <-ctx.Done():
			timer.Stop()
			return fmt.Errorf("%w (%w)", context.Cause(ctx), err)
		}
		pause = min(pause*5/4, 10*time.Millisecond)
	}
}

// Await is [Await] for the process that it has. The error has the last line of its log if that has ended. It
// must have been started.
func (d *Daemon) Await(ctx context.Context, answers func(context.Context) error) error {
	err := Await(ctx, d.proc, answers)
	if errors.Is(err, proc.ErrEnded) {
		text, _ := readFrom(d.Log(), 0) // no log: nothing to add
		return fmt.Errorf("%w; its log says: %s", err, d.reason(text))
	}
	return err
}

// LastLine returns the last line of a text that is not empty.
func LastLine(text string) string {
	text = strings.TrimSpace(text)
	return strings.TrimSpace(text[strings.LastIndexByte(text, '\n')+1:])
}

// reason returns the line of a log that says why its server ended.
func (d *Daemon) reason(log string) string {
	says := d.program.Reason
	if says == nil {
		says = LastLine
	}
	line := says(log)
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
