package harness

import (
	"context"
	"fmt"
	"hash/fnv"
	"io"
	"math/rand/v2"
	"net"
	"runtime/debug"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"

	"github.com/lockfault/lockfault/faults"
	"github.com/lockfault/lockfault/strategies"
)

// client is a participant: one goroutine that does what the script tells it,
// one thing after the other, with a lock of the strategy under test.
//
// The stage's goroutine owns the first group of fields and reads and writes
// them in between; everything that the client's goroutine wants recorded or
// changed goes through tell.
type client struct {
	name          string
	stage         *stage
	lives         []*client // its former lives
	busy          bool
	queue         []task        // what to do when it is done with what it does
	due           time.Duration // when what it does should have ended; what it was paused since Begin comes on top
	holds         int
	repliesBefore int
	until         time.Duration // end of the validity that the lock published; 0 if none

	dead   atomic.Bool // its process crashed: this life is over, though its goroutines don't know
	life   context.Context
	cancel context.CancelFunc
	nodes  []redis.UniversalClient
	lock   strategies.Lock
	warm   strategies.Lock
	told   chan struct{} // closed when the present hold is over, for the one who waits for its loss

	todo chan func()
	gone chan struct{} // closed when its goroutine has ended

	mu   sync.Mutex
	box  []*note
	what string // what it is doing
}

// note is a request of a client to the stage.
type note struct {
	do   func()
	done chan struct{}
}

func newClient(s *stage, name string) (*client, error) {
	c := &client{name: name, stage: s, todo: make(chan func()), gone: make(chan struct{})}
	c.life, c.cancel = context.WithCancel(context.Background())
	lifeNo := 0
	if old := s.clients[name]; old != nil {
		lifeNo = len(old.lives) + 1
	}
	h := fnv.New64a()
	fmt.Fprintf(h, "%s/%d", name, lifeNo)
	source := rand.New(rand.NewPCG(s.cell.Seed, h.Sum64()))
	env := strategies.Env{
		Key: lockKey, TTL: s.ttl, Replicas: s.script.Replicas,
		Owner:  fmt.Sprintf("%s-%016x", name, source.Uint64()),
		Thread: s.script.Threads[name],
		Now:    c.wall,
		Rand:   source,
	}
	if env.Thread == "" {
		env.Thread = strconv.FormatUint(1000+source.Uint64N(9000), 10)
	}
	for i := range max(1, s.cell.Strategy.Nodes) {
		c.nodes = append(c.nodes, c.connect(faults.NodeName(i)))
	}
	env.Nodes = c.nodes
	var err error
	if c.lock, err = s.cell.Strategy.New(env); err != nil {
		return nil, err
	}
	env.Key = lockKey + ":warm-up"
	if c.warm, err = s.cell.Strategy.New(env); err != nil {
		return nil, err
	}
	go c.run()
	return c, nil
}

// connect returns a go-redis client of a node, set up as the script says.
func (c *client) connect(node string) *redis.Client {
	script := c.stage.script
	retries := script.Retries
	if retries == 0 {
		retries = -1 // go-redis takes 0 for its default of 3
	}
	timeout := script.ReadTimeout.Of(c.stage.ttl)
	return redis.NewClient(&redis.Options{
		Addr: "127.0.0.1:6379", // never dialled, but a host name would be looked up
		Dialer: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return c.dial(ctx, node)
		},
		MaxRetries: retries,
		// go-redis draws its pauses from a source that can't be seeded,
		// between these two.
		MinRetryBackoff: 8 * time.Millisecond, MaxRetryBackoff: 8 * time.Millisecond,
		DialerRetries:         1,
		ReadTimeout:           timeout,
		WriteTimeout:          timeout,
		ContextTimeoutEnabled: !script.IgnoreContext,
		// Timers that wait for a free connection are shared between
		// bubbles, which is fatal: let there always be one.
		PoolSize: 128, ConnMaxIdleTime: -1,
		Protocol: 2, DisableIdentity: true,
		MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
	})
}

// dial connects to a node. The world knows clients by name only, and after a
// restart the name is another life's: the goroutines of a dead one, when they wake
// up, must stay out.
func (c *client) dial(ctx context.Context, node string) (net.Conn, error) {
	if c.dead.Load() {
		<-c.life.Done()
		return nil, net.ErrClosed
	}
	return c.stage.world.Dial(ctx, c.name, node)
}

// wall reads the client's wall clock.
func (c *client) wall() time.Time {
	if c.dead.Load() {
		<-c.life.Done()
		return time.Now()
	}
	return c.stage.world.Wall(c.name)
}

// task is something that the script tells a client to do.
type task struct {
	do func()
	// limit is how long it may take; what the client is paused comes on top.
	limit time.Duration
}

// give gives the client something to do: at once, or if it is stopped in the
// middle of something else, when it is done with that.
func (c *client) give(t task) {
	if c.busy {
		c.queue = append(c.queue, t)
		return
	}
	c.start(t)
	select {
	case c.todo <- t.do:
	case <-c.gone:
	}
}

// start notes that a task begins now.
func (c *client) start(t task) {
	state := c.stage.world.Client(c.name)
	c.busy, c.due, c.repliesBefore = true, c.stage.world.Now()+t.limit-state.PausedFor, state.Replies
}

// next notes that the client is done with its task, and returns the next one,
// nil if there is none.
func (c *client) next() (do func()) {
	c.busy = false
	if len(c.queue) == 0 {
		return nil
	}
	t := c.queue[0]
	c.queue = c.queue[1:]
	c.start(t)
	return t.do
}

func (c *client) run() {
	defer close(c.gone)
	for {
		select {
		case <-c.life.Done():
			return
		case do := <-c.todo:
			for do != nil {
				c.guard(do)
				if !c.tell(func() { do = c.next() }) {
					return
				}
			}
		}
	}
}

// guard turns a panic of the strategy into a failure of the stage.
func (c *client) guard(task func()) {
	defer func() {
		if v := recover(); v != nil {
			err := fmt.Errorf("harness: %s's %s panicked: %v\n\n%s", c.name, c.doing(), v, debug.Stack())
			c.tell(func() { c.stage.fail(err) })
		}
	}()
	task()
}

// tell lets the stage do something on behalf of the client and waits until it
// is done: while the process is stopped it isn't. It reports false if the
// client's life ended first.
func (c *client) tell(do func()) bool {
	n := &note{do: do, done: make(chan struct{})}
	c.mu.Lock()
	c.box = append(c.box, n)
	c.mu.Unlock()
	c.stage.world.Notify()
	select {
	case <-n.done:
		return true
	case <-c.life.Done():
		return false
	}
}

// take returns what the client has asked for since the last time.
func (c *client) take() []*note {
	c.mu.Lock()
	defer c.mu.Unlock()
	notes := c.box
	c.box = nil
	return notes
}

func (c *client) doing() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.what
}

func (c *client) does(what string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.what = what
}

// over reports whether the client's goroutine has ended.
func (c *client) over() bool {
	select {
	case <-c.gone:
		return true
	default:
		return false
	}
}

// leave closes what the client's locks and connections keep open.
func (c *client) leave() {
	for _, lock := range [...]strategies.Lock{c.lock, c.warm} {
		if closer, ok := lock.(io.Closer); ok {
			// A lock that can't close properly in a world that has gone
			// shows in the goroutines that it leaves behind.
			_ = closer.Close()
		}
	}
	for _, node := range c.nodes {
		_ = node.Close()
	}
}
