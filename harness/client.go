package harness

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"math/rand/v2"
	"net"
	"runtime/debug"
	"strconv"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"

	"github.com/lockfault/lockfault/checker"
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
		Now:    func() time.Time { return s.world.Wall(name) },
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
			return c.stage.world.Dial(ctx, c.name, node)
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

func (c *client) warmUp() {
	c.does("warm-up")
	ctx, cancel := context.WithTimeout(c.life, 30*time.Second)
	defer cancel()
	err := c.warm.Acquire(ctx)
	if err == nil {
		err = c.warm.Release(ctx)
	}
	if err != nil {
		c.tell(func() {
			c.stage.fail(fmt.Errorf("harness: %s failed on a free lock on healthy nodes: %w", c.stage.cell.Strategy.Name, err))
		})
	}
}

// call calls an operation of the lock and has it recorded.
func (c *client) call(op checker.Op, patience time.Duration) checker.Result {
	s := c.stage
	c.does(string(op))
	var id, trips int
	began := c.tell(func() {
		s.calls++
		id, trips = s.calls, s.world.Client(c.name).RoundTrips
		if op == checker.Release {
			c.loosen()
		}
		s.record(checker.Event{Kind: checker.Invoke, Time: s.world.Now(), Client: c.name, Op: op, Call: id})
	})
	if !began {
		return checker.Unknown
	}
	ctx, cancel := context.WithTimeout(c.life, patience)
	err := c.invoke(ctx, op)
	cancel()
	result := classify(err)
	c.tell(func() {
		e := checker.Event{Kind: checker.Return, Time: s.world.Now(), Client: c.name, Op: op, Call: id, Result: result}
		if err != nil {
			e.Error = err.Error()
		}
		if result == checker.OK {
			c.succeeded(op, &e)
			spent := s.world.Client(c.name).RoundTrips - trips
			if best, ok := s.roundTrips[op]; !ok || spent < best {
				s.roundTrips[op] = spent
			}
		}
		s.record(e)
	})
	return result
}

// loosen notes that the client gives up one of its holds.
func (c *client) loosen() {
	c.holds = max(0, c.holds-1)
	if c.holds == 0 && c.told != nil {
		close(c.told)
		c.told = nil
	}
}

// succeeded notes what an operation that succeeded changed, and fills in what
// the lock says of its hold.
func (c *client) succeeded(op checker.Op, e *checker.Event) {
	if op == checker.Acquire || op == checker.TryAcquire {
		c.holds++
		if fenced, ok := c.lock.(strategies.Fenced); ok {
			e.Token = fenced.Token()
		}
		if lock, ok := c.lock.(strategies.LossNotifier); ok && c.told == nil {
			c.told = make(chan struct{})
			go c.hear(lock.Lost(), c.told)
		}
	}
	if lock, ok := c.lock.(strategies.Validity); ok && op != checker.Release {
		c.until = e.Time + lock.ValidUntil().Sub(c.stage.world.Wall(c.name))
		e.Until = c.until
	}
}

// hear waits for the lock to say that it was lost.
func (c *client) hear(lost <-chan struct{}, told chan struct{}) {
	select {
	case <-lost:
		c.tell(func() {
			if c.told != told {
				return // the hold is over already
			}
			c.told, c.holds = nil, 0
			c.stage.record(checker.Event{Kind: checker.Lost, Time: c.stage.world.Now(), Client: c.name})
		})
	case <-told:
	case <-c.life.Done():
	}
}

func (c *client) invoke(ctx context.Context, op checker.Op) error {
	switch op {
	case checker.Acquire:
		return c.lock.Acquire(ctx)
	case checker.TryAcquire:
		if lock, ok := c.lock.(strategies.TryAcquirer); ok {
			return lock.TryAcquire(ctx)
		}
		// One attempt is what fits before the first pause between two.
		ctx, cancel := context.WithTimeout(ctx, c.stage.ttl/100)
		defer cancel()
		return c.lock.Acquire(ctx)
	case checker.Release:
		return c.lock.Release(ctx)
	case checker.Extend:
		if lock, ok := c.lock.(strategies.Extender); ok {
			return lock.Extend(ctx)
		}
		return errNoExtend
	}
	return fmt.Errorf("harness: a lock has no operation %q", op)
}

var errNoExtend = errors.New("harness: this lock can't be extended by its user")

func classify(err error) checker.Result {
	switch {
	case err == nil:
		return checker.OK
	case errors.Is(err, strategies.ErrNotAcquired), errors.Is(err, strategies.ErrNotHeld), errors.Is(err, errNoExtend):
		return checker.Fail
	}
	return checker.Unknown
}

// write writes to the protected resource, if the client believes that it holds
// the lock: one that knows better doesn't. Where clients were told to stop when
// their lock is no longer valid, they don't believe that for longer.
func (c *client) write() {
	s := c.stage
	c.does("write")
	c.tell(func() {
		now := s.world.Now()
		if c.holds == 0 || s.script.HonourValidity && c.until != 0 && now >= c.until {
			return
		}
		var token int64
		if fenced, ok := c.lock.(strategies.Fenced); ok {
			token = fenced.Token()
		}
		s.record(checker.Event{
			Kind: checker.Write, Time: now, Client: c.name, Token: token, Accepted: s.register.write(token),
		})
	})
}

// work lets the client be busy for a time that stands still while it is paused.
func (c *client) work(span time.Duration) {
	s := c.stage
	c.does("work")
	var paused time.Duration
	read := func() { paused = s.world.Client(c.name).PausedFor }
	if !c.tell(read) {
		return
	}
	for left := span; left > 0; {
		select {
		case <-time.After(left):
		case <-c.life.Done():
			return
		}
		before := paused
		if !c.tell(read) {
			return
		}
		left = paused - before
	}
}

// rounds lets the client use the lock as its users do, again and again.
func (c *client) rounds(times int, patience, work time.Duration) {
	for range times {
		if c.call(checker.Acquire, patience) == checker.OK {
			c.write()
			c.work(work)
			c.call(checker.Release, patience)
		}
		if c.life.Err() != nil {
			return
		}
	}
}
