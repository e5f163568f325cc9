package harness

import (
	"context"
	"net"
	"sync/atomic"
	"time"

	"github.com/lockfault/lockfault/faults"
	"github.com/lockfault/lockfault/internal/harness/client"
	"github.com/lockfault/lockfault/strategies"
)

// local is a client in this process, for worlds that clients dial into. Its goroutine reports
// through the Mailbox, which the runner reads.
type local struct {
	name   string
	world  faults.Dialer
	client *client.Client
	dead   atomic.Bool // its process crashed: this life is over, although its goroutines still exist
	life   context.Context
	end    context.CancelFunc
	gone   chan struct{} // closed when its goroutine has ended

	Mailbox
}

// newLocal starts a client, which makes its lock while the world continues.
func newLocal(setup client.Setup, strategy strategies.Strategy, world faults.Dialer) (*local, error) {
	b := &local{name: setup.Client, world: world, gone: make(chan struct{})}
	b.life, b.end = context.WithCancel(context.Background())
	var err error
	b.client, err = client.New(b.life, setup, strategy, client.Host{Stage: b, Dial: b.dial, Now: b.wall})
	if err != nil {
		b.end()
		return nil, err
	}
	go func() {
		defer close(b.gone)
		returned := false
		defer func() {
			if !returned {
				b.Report(client.Report{Kind: client.Refused, Error: "its New ended its goroutine, as runtime.Goexit does, and t.Fatal"})
			}
		}()
		made := b.client.Make()
		returned = true
		if _, ok := b.Report(made); ok && made.Kind == client.Made {
			b.client.Run()
		}
	}()
	return b, nil
}

// dial connects to a node. Worlds identify clients by name, and after a restart the name belongs to
// another life; therefore goroutines of a dead life block here instead of dialling.
func (b *local) dial(ctx context.Context, node string) (net.Conn, error) {
	if b.dead.Load() {
		<-b.life.Done()
		return nil, net.ErrClosed
	}
	return b.world.Dial(ctx, b.name, node)
}

// wall reads the client's wall clock. For a dead life, wall blocks as dial does.
func (b *local) wall() time.Time {
	if b.dead.Load() {
		<-b.life.Done()
		return time.Now()
	}
	return b.world.ClientTime(b.name)
}

// Report implements [client.Stage].
func (b *local) Report(r client.Report) (client.Answer, bool) {
	var answer client.Answer
	done := make(chan struct{})
	b.Put(PendingReport{r, func(a client.Answer) {
		answer = a
		close(done)
		b.world.Notify() // the client continues: the world must run again until the client waits
	}})
	b.world.Notify()
	select {
	case <-done:
		return answer, true
	case <-b.life.Done():
		return client.Answer{}, false
	}
}

func (b *local) Give(t client.Task) { b.client.Give(t) }
func (b *local) Skew(time.Duration) {}
func (b *local) CancelOperation()   { b.client.CancelOperation() }
func (b *local) Kill()              { b.dead.Store(true) }
func (b *local) Cancel()            { b.end() }
func (b *local) Detach()            { b.client.Leave() }

func (b *local) Done() bool {
	select {
	case <-b.gone:
		return true
	default:
		return false
	}
}
