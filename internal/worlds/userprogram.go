package worlds

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/lockfault/lockfault/faults/real"
	"github.com/lockfault/lockfault/internal/harness"
	"github.com/lockfault/lockfault/internal/harness/client"
	"github.com/lockfault/lockfault/internal/harness/lockproc"
)

// program is a client whose process is a user's program that speaks the simple form of the protocol
// (docs/subject.md). Work and writes between operations are done in this process on behalf of the
// program. They also stop while the program is stopped, since the client's reports are not
// processed until it resumes.
type program struct {
	name    string
	world   *world
	process *real.Process
	talk    *lockproc.Talk
	client  *client.Client
	life    context.Context
	end     context.CancelFunc
	gone    chan struct{} // closed when the client's goroutine has ended
	clock   *clientClock  // nil if the script moves no client's clock

	made     atomic.Bool // the client has made its lock
	expected atomic.Bool // the script or the runner ended the process

	harness.Mailbox
}

var _ body = (*program)(nil)

// newProgram starts a client's process, which makes its lock while the world continues.
func newProgram(setup client.Setup, w *world) (*program, error) {
	process, err := w.Spawn(setup.Client)
	if err != nil {
		return nil, err
	}
	b := &program{name: setup.Client, world: w, process: process, gone: make(chan struct{}), clock: w.clocks.of(process)}
	if err := b.setClock(); err != nil {
		return nil, err
	}
	nodes, err := nodesAt(process.Home)
	if err != nil {
		return nil, err
	}
	b.life, b.end = context.WithCancel(context.Background())
	b.talk = lockproc.NewTalk(process.In, process.Out)
	strategy := b.talk.Strategy(b.life, setup, nodes)
	setup.Nodes = nil // the client itself connects to no node
	b.client, err = client.New(b.life, setup, strategy, client.Host{
		Stage: b, Now: func() time.Time { return w.ClientTime(setup.Client) },
	})
	if err != nil {
		b.end()
		return nil, err
	}
	go b.run()
	go b.listen()
	return b, nil
}

// nodesAt returns the nodes of a client's home.
func nodesAt(home real.Home) (nodes []lockproc.Node, err error) {
	for _, p := range home.Places {
		host, port, err := net.SplitHostPort(p.Addr)
		if err != nil {
			return nil, err
		}
		number, err := strconv.Atoi(port)
		if err != nil {
			return nil, fmt.Errorf("the port of %s: %w", p.Addr, err)
		}
		nodes = append(nodes, lockproc.Node{Host: host, Port: number, Username: p.Username, Password: p.Password, DB: p.DB})
	}
	return nodes, nil
}

// run is the client's own goroutine.
func (b *program) run() {
	defer close(b.gone)
	made := b.client.Make()
	if b.life.Err() != nil {
		return // the client was ended, so a failed Make is not a refusal
	}
	b.process.MeasureLateness()
	b.made.Store(made.Kind == client.Made)
	if err := b.unfit(); made.Kind == client.Made && err != nil {
		made = client.Report{Kind: client.Refused, Error: err.Error()}
	}
	if made.Kind == client.Refused {
		b.expected.Store(true)
	}
	if _, ok := b.Report(made); ok && made.Kind == client.Made {
		b.client.Run()
	}
}

// unfit implements [body]. Only after its first answer is it known whether a program uses its
// clock.
func (b *program) unfit() error {
	if err := b.process.Stray(); err != nil {
		return err
	}
	if b.made.Load() {
		return b.clock.loaded(b.process.Command.Args)
	}
	return nil
}

// listen detects a violation of the protocol or the unexpected end of the program.
func (b *program) listen() {
	select {
	case <-b.talk.Broken():
		b.fails("program " + b.talk.Wrong().Error())
	case <-b.process.Ended():
		select { // the program's last output may show the reason
		case <-b.talk.Silent():
		case <-time.After(time.Second):
		}
		if wrong := b.talk.Wrong(); wrong != nil {
			b.fails("program " + wrong.Error())
			break
		}
		status := b.process.Status()
		if status == nil {
			status = errors.New("exit status 0")
		}
		b.fails(fmt.Sprintf("program ended by itself: %v", status))
	}
	<-b.process.Ended()
	b.world.Notify()
}

// fails reports an error of the program, unless the end of the program is expected.
func (b *program) fails(why string) {
	if b.expected.Load() {
		return
	}
	b.Put(harness.PendingReport{Report: client.Report{Kind: client.Failed, Error: why}, Answer: func(client.Answer) {}})
	b.world.Notify()
}

// Report implements [client.Stage].
func (b *program) Report(r client.Report) (client.Answer, bool) {
	answered := make(chan client.Answer, 1)
	b.Put(harness.PendingReport{Report: r, Answer: func(a client.Answer) { answered <- a }})
	b.world.Notify()
	select {
	case a := <-answered:
		return a, true
	case <-b.life.Done():
		return client.Answer{}, false
	}
}

// lastWords implements [body]. The program's delay is measured from outside, so no wait is needed.
func (b *program) lastWords(bool) { b.process.MeasureLateness() }

func (b *program) called() string     { return b.name }
func (b *program) stderrTail() string { return b.process.StderrTail() }

func (b *program) Give(t client.Task) { b.client.Give(t) }

// Skew implements [harness.ClientProcess]: it sets the program's clock to the world's clock of the
// client.
func (b *program) Skew(time.Duration) {
	if err := b.setClock(); err != nil {
		b.fails(err.Error())
	}
}

func (b *program) setClock() error {
	if b.clock == nil {
		return nil
	}
	return b.clock.set(time.Until(b.world.ClientTime(b.name)))
}

// CancelOperation implements [harness.ClientProcess]. The method is never needed, since no program
// reports support for cancels.
func (b *program) CancelOperation() {}

func (b *program) Kill() {
	b.expected.Store(true)
	b.end()
}

func (b *program) Cancel() {
	b.expected.Store(true)
	b.end()
	b.talk.Shutdown()
}

func (b *program) Done() bool {
	select {
	case <-b.process.Ended():
	default:
		return false
	}
	select {
	case <-b.gone:
		return true
	default:
		return false
	}
}

func (b *program) Detach() { b.client.Leave() }
