package harness

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/lockfault/lockfault/checker"
	"github.com/lockfault/lockfault/faults"
	"github.com/lockfault/lockfault/faults/sim"
	"github.com/lockfault/lockfault/internal/harness/client"
	"github.com/lockfault/lockfault/scenarios"
)

// LockKey is the name of the lock in worlds without other data.
const LockKey = "lock"

// runner runs one cell. Its methods belong to the goroutine that runs the script; the clients'
// goroutines reach it only through their mailboxes.
type runner struct {
	cell    Cell
	script  *scenarios.Script
	ttl     time.Duration
	key     string
	bubble  bool // time is virtual
	world   faults.World
	broken  func() error // returns why the world cannot continue; nil in worlds that cannot fail
	clients map[string]*participant
	embody  func(client.Setup) (ClientProcess, error)
	names   []string // of the clients, in the script's order
	history checker.History

	orders     []order // gate commands, in the order in which the world received them
	cancels    []cancel
	metNothing []UnmatchedStep
	register   register
	calls      int
	roundTrips map[checker.Op]int
	watches    map[string]time.Duration
	measures   map[string]time.Duration
	virtual    time.Duration
	failure    error
	watch      *watch
	observed   observed
}

// order is a gate command with its script line.
type order struct {
	line  int
	given faults.Order
}

// Meta returns the metadata of the cell's history before the first event. Meta does not include
// facts that show only later: whether the resource is fenced.
func (c Cell) Meta() checker.Meta {
	world, ttl := Sim, c.TTL
	if c.Place != nil {
		world = c.Place.Name()
	}
	switch {
	case ttl > 0:
	case c.Place != nil:
		ttl = c.Place.Lease()
	default:
		ttl = c.Script.TTL
	}
	meta := checker.Meta{
		Format: 1, Strategy: c.Strategy.Name, Scenario: c.Script.Name, World: world, Service: c.Strategy.Service, Query: c.Strategy.Query, Seed: c.Seed,
		Clients: c.Script.Clients, TTL: ttl, Grace: c.Script.Grace.Of(ttl), Bound: c.Script.Bound.Of(ttl),
		HonourValidity: c.Script.HonourValidity,
	}
	for i := range max(1, c.Strategy.Nodes) {
		meta.Nodes = append(meta.Nodes, faults.NodeName(i))
	}
	return meta
}

// MaxEvents is the maximum number of events of a history. A cell with more events fails before it
// fills the machine's memory. One hour of a soak of redlock with five clients has a third of
// MaxEvents.
const MaxEvents = 500_000

// newStage returns a runner without a world.
func newStage(cell Cell) *runner {
	script := cell.Script
	s := &runner{
		cell: cell, script: script, key: LockKey, names: script.Clients,
		clients: map[string]*participant{}, roundTrips: map[checker.Op]int{},
		watches: map[string]time.Duration{}, measures: map[string]time.Duration{},
	}
	s.history.Meta = cell.Meta()
	s.ttl = s.history.Meta.TTL
	return s
}

// newSimStage returns a runner in virtual time. Call newSimStage in a bubble.
func newSimStage(cell Cell) (*runner, error) {
	s := newStage(cell)
	world, err := sim.New(sim.Config{
		Nodes: len(s.history.Meta.Nodes), Replicas: s.script.Replicas, Lock: cell.Lock(s.key), TTL: s.ttl, Seed: cell.Seed, Record: s.record, Spares: cell.Spares,
	})
	if err != nil {
		return nil, fmt.Errorf("harness: making the world: %w", err)
	}
	s.world = world
	s.embody = func(setup client.Setup) (ClientProcess, error) { return newLocal(setup, cell.Strategy, world) }
	s.bubble = true
	return s, nil
}

// play runs the script from its first step until all clients have ended. The error describes a
// problem of the strategy or the script, as opposed to an anomaly of the lock.
func (s *runner) play() error { return errors.Join(s.perform(), s.close()) }

// perform runs the script to its last step.
func (s *runner) perform() error {
	if err := s.prepare(); err != nil {
		return err
	}
	s.steps(s.script.Steps)
	s.conclude()
	return s.failure
}

// prepare starts the clients and warms them up, until the script can begin.
func (s *runner) prepare() error {
	for _, name := range s.names {
		s.enter(name, 0)
		if s.failure != nil {
			return s.failure
		}
		s.finish([]string{name})
	}
	s.warmUp()
	s.hush()
	if s.failure != nil {
		return s.failure
	}
	if s.bubble {
		s.run(untilUneven(time.Now()), never)
	}
	s.world.Begin()
	s.register = register{}
	return nil
}

// unevenStart is how long after a full second scripts begin in virtual time. Virtual time begins at a full
// second, which would hide that a lock cuts dates down to seconds.
const unevenStart = 900 * time.Millisecond

// untilUneven returns the time until the next unevenStart.
func untilUneven(now time.Time) time.Duration {
	d := unevenStart - time.Duration(now.Nanosecond())
	if d < 0 {
		d += time.Second
	}
	return d
}

// steps runs the given steps of the script.
func (s *runner) steps(list []scenarios.Step) {
	for _, step := range list {
		if s.failure != nil {
			break
		}
		s.watch.before(step, s)
		s.record(checker.Event{Kind: checker.Step, Time: s.world.Now(), Line: step.Line, Text: step.Do.String()})
		s.do(step)
		if s.bubble {
			s.run(0, never) // each started client runs as far as it can at this instant
		}
		s.serve()
	}
}

// conclude records the final state after the last step.
func (s *runner) conclude() {
	for _, name := range s.names {
		if p := s.clients[name]; p.making && p.busy && !s.stopped(name) && p.left() <= 0 {
			s.fail(p.overdue("")) // no step had waited for its lock
		}
	}
	s.quieten()
	s.virtual = s.world.Now()
	s.watch.end(s)
	s.noteUnmatched()
	s.record(checker.Event{Kind: checker.End, Time: s.virtual})
}

// serve lets real servers reply to the requests that they have received, because these requests
// arrived before the next step. Nothing else happens between two steps.
func (s *runner) serve() {
	if s.bubble {
		return
	}
	s.run(s.taskLimit(0), func() bool {
		return !slices.ContainsFunc(s.names, func(name string) bool { return s.world.Client(name).InHand > 0 })
	})
}

// quieten lets clients in real time complete the consequences of the last step, until no event
// occurs for a while. The wait ends after about a hundredth of the lease, even if a client is never
// silent.
func (s *runner) quieten() {
	if s.bubble {
		return
	}
	for until := s.world.Now() + s.ttl/100; s.world.Now() < until; {
		seen := len(s.history.Events)
		if !s.run(silence, func() bool { return len(s.history.Events) > seen }) {
			return
		}
	}
}

// silence is the time without events after which no further events of a real server are expected.
const silence = 2 * time.Millisecond

// enter starts a client's process, or restarts it in a line of the script. The client's lock is not
// made yet when enter returns.
func (s *runner) enter(name string, line int) {
	if s.failure != nil {
		return
	}
	p := &participant{name: name, stage: s, line: line}
	if old := s.clients[name]; old != nil {
		p.lives = append(old.lives, old.body)
	}
	var err error
	if p.body, err = s.embody(s.setup(name, len(p.lives))); err != nil {
		s.fail(fmt.Errorf("harness: client %s: %w", name, err))
		return
	}
	s.clients[name] = p
	p.awaken(s.makes())
}

// makes returns the time limit of a strategy's New, which is that of an operation without a wait.
func (s *runner) makes() time.Duration { return s.taskLimit(0) }

// setup returns the client's Setup.
func (s *runner) setup(name string, life int) client.Setup {
	return client.Setup{
		Client: name, Life: life, Strategy: s.cell.Strategy.Name,
		Key: s.key, WarmUp: s.key + ":warm-up:" + name, TTL: s.ttl, Thread: s.script.Threads[name],
		Seed: s.cell.Seed, Replicas: s.script.Replicas, Nodes: s.history.Meta.Nodes,
		RealTime: !s.bubble, Retries: s.script.Retries, ReadTimeout: s.script.ReadTimeout.Of(s.ttl), IgnoreContext: s.script.IgnoreContext,
	}
}

// warmUp lets each client use another lock once. Connections are then open and scripts loaded when
// the script begins: the test is about the lock, not about the first second of its process.
func (s *runner) warmUp() {
	for _, name := range s.names {
		s.begin([]string{name}, false, task{client.Task{Do: client.DoWarmUp}, s.taskLimit(30 * time.Second)})
	}
}

// hush waits until the clients' messages in transit have arrived, so that the history does not
// begin with the end of the preparations. A client that is never silent does not extend the wait.
func (s *runner) hush() {
	s.run(s.ttl/momentsInLease, func() bool {
		return !slices.ContainsFunc(s.names, func(name string) bool { return s.world.Client(name).UnderWay > 0 })
	})
}

// record appends an event to the history.
func (s *runner) record(e checker.Event) {
	events := s.history.Events
	if len(events) >= MaxEvents {
		s.fail(fmt.Errorf("the history has %d events, and may have no more: take a shorter script or window", MaxEvents))
		return
	}
	if len(events) == cap(events) {
		events = slices.Grow(events, max(64, len(events))) // append would grow a long slice by a quarter only, and copy it more often
	}
	e.Index = len(events)
	s.history.Events = append(events, e)
}

// fail records the first failure; the script ends with the current step.
func (s *runner) fail(err error) {
	if s.failure == nil {
		s.failure = err
	}
}

func never() bool { return false }

// run lets the world continue until the function returns true, limit has passed, or the runner
// failed. run reports whether the function returned true.
func (s *runner) run(limit time.Duration, until func() bool) bool {
	met := false
	s.world.Run(limit, func() bool {
		s.listen()
		met = until()
		return met || s.failure != nil
	})
	if s.broken != nil && s.failure == nil {
		s.failure = s.broken()
	}
	return met
}

// listen processes the clients' reports in the order of the clients' names, so that simultaneous
// events have a defined order. The reports of a stopped client are not processed.
func (s *runner) listen() {
	for _, name := range s.names {
		c := s.clients[name]
		if c == nil || c.body.Empty() {
			continue
		}
		if state := s.world.Client(name); state.Paused || state.Crashed {
			continue
		}
		for _, n := range c.body.Take() {
			n.Answer(c.hear(n.Report))
		}
	}
}

// forbearance returns how long an operation may take to return after its context is done: enough
// for all its pending commands to time out.
func (s *runner) forbearance() time.Duration {
	timeout := s.script.ReadTimeout.Of(s.ttl)
	return 10*time.Second + time.Duration(2*len(s.history.Meta.Nodes)*(s.script.Retries+1))*timeout
}

func (s *runner) do(step scenarios.Step) {
	switch do := step.Do.(type) {
	case scenarios.Call:
		patience := do.Within
		if patience.IsZero() {
			patience = s.script.Patience
		}
		limit := patience.Of(s.ttl)
		s.begin(do.Clients, do.Begin, task{client.Task{Do: client.DoCall, Op: checker.Op(do.Op), Within: limit}, s.taskLimit(limit)})
	case scenarios.Work:
		span := do.For.Of(s.ttl)
		s.begin(do.Clients, do.Begin, task{client.Task{Do: client.DoWork, For: span}, s.taskLimit(span)})
	case scenarios.Write:
		s.begin(do.Clients, do.Begin, task{client.Task{Do: client.DoWrite}, s.taskLimit(0)})
	case scenarios.Rounds:
		s.begin(do.Clients, do.Begin, s.rounds(do))
	case scenarios.Await:
		s.await(do)
	case scenarios.Wait:
		s.run(do.For.Of(s.ttl), never)
	case scenarios.Measure:
		s.measure(do)
	case scenarios.Inject:
		s.inject(step, do.Fault)
	default:
		s.fail(fmt.Errorf("harness: line %d: no player for %T", step.Line, do))
	}
}

// rounds returns the task for a client. The task is DoRounds, which all programs support, if
// DoRounds is sufficient.
func (s *runner) rounds(do scenarios.Rounds) task {
	t := client.Task{Do: client.DoRounds, Times: do.Times, Within: s.script.Patience.Of(s.ttl), For: do.Work.Of(s.ttl),
		Lasting: do.For.Of(s.ttl), Update: do.Update, Think: do.Think.Of(s.ttl)}
	if t.Times == 0 || t.Update || t.Think > 0 {
		t.Do = client.DoUse
	}
	round := s.taskLimit(2*t.Within + t.For + client.LongestThought*t.Think)
	return task{t, time.Duration(max(1, t.Times))*round + t.Lasting}
}

// taskLimit returns the time limit of a task that should take span. The client's pauses extend the
// limit.
func (s *runner) taskLimit(span time.Duration) time.Duration { return span + 2*s.forbearance() }

// begin gives clients a task, and waits until they have done it unless dontWait is true. begin does
// not wait for stopped clients.
func (s *runner) begin(names []string, dontWait bool, t task) {
	s.finish(names)
	for _, name := range names {
		if s.failure == nil && !s.world.Client(name).Crashed {
			s.clients[name].give(t)
		}
	}
	if dontWait {
		s.setOut(names)
		return
	}
	s.finish(names)
}

// setOut waits until the clients have begun their tasks and the first request of each client is on
// its way. The script's next step must affect these requests. In virtual time no wait is needed. In
// real time the wait is limited to a moment that the script tolerates, since a lock may do
// something else before its first request.
func (s *runner) setOut(names []string) {
	if s.bubble {
		return // steps runs every client as far as it can
	}
	s.run(s.ttl/momentsInLease, func() bool {
		return !slices.ContainsFunc(names, func(name string) bool {
			c := s.clients[name]
			return c.busy && !s.stopped(name) && (!c.begun || c.asks && s.world.Client(name).RoundTrips == c.trips)
		})
	})
}

// momentsInLease is the number of moments in a lease. The machine may be late by two moments.
const momentsInLease = 40

// finish waits until clients are done, except for stopped clients. A client that exceeds the time
// limit of its task ignores its context.
func (s *runner) finish(names []string) {
	for _, name := range names {
		c := s.clients[name]
		for c.busy && !s.stopped(name) && s.failure == nil {
			left := c.left()
			if left <= 0 {
				stacks := ""
				if body, ok := c.body.(StackDumper); ok {
					stacks = body.Stacks()
				}
				s.fail(c.overdue(stacks))
				return
			}
			s.run(left, func() bool { return !c.busy || s.stopped(name) })
		}
	}
}

// stopped reports whether the client is paused or crashed.
func (s *runner) stopped(name string) bool {
	state := s.world.Client(name)
	return state.Paused || state.Crashed
}

const (
	// simultaneous is the time within which the timers of several clients fire in virtual time if the
	// clients set them in successive steps of a script. An await that lasted so long that a timer ended it
	// waits for the others, too: otherwise a search would find a client in the middle of what its timer began.
	simultaneous = 30 * time.Microsecond
	// longerThanAReply is longer than a request and its reply take without a fault.
	longerThanAReply = 10 * time.Millisecond
)

func (s *runner) await(a scenarios.Await) {
	limit := a.Within.Of(s.ttl)
	if limit == 0 {
		limit = s.script.Patience.Of(s.ttl) + s.forbearance()
	}
	if !s.bubble {
		// In real time, a limit that is sufficient in virtual time would be too short.
		limit = max(limit, s.ttl/10)
	}
	nodes := faults.ResolveNodes(a.Nodes, len(s.history.Meta.Nodes))
	begun := s.world.Now()
	s.run(limit, func() bool {
		return !slices.ContainsFunc(a.Clients, func(name string) bool {
			c, state := s.clients[name], s.world.Client(name)
			if !c.busy || state.Crashed {
				return false // the condition is met, or cannot be met any more
			}
			switch a.State {
			case scenarios.AwaitHeld:
				return state.Held == 0 || slices.ContainsFunc(nodes, func(node string) bool { return !s.world.Holds(name, node) })
			case scenarios.AwaitReplies:
				return state.Replies-c.repliesBefore < a.Count
			case scenarios.AwaitHolding:
				return c.holds == 0
			}
			return true
		})
	})
	if s.bubble && s.world.Now()-begun > longerThanAReply {
		s.run(simultaneous, func() bool { return false })
	}
}

func (s *runner) measure(m scenarios.Measure) {
	if !m.Stop {
		s.watches[m.Name] = s.world.Now()
		return
	}
	s.measures[m.Name] = s.world.Now() - s.watches[m.Name]
	s.record(checker.Event{Kind: checker.Measure, Time: s.world.Now(), Text: m.Name, Took: s.measures[m.Name]})
}

func (s *runner) inject(step scenarios.Step, f faults.Fault) {
	missed := false
	switch f := f.(type) {
	case faults.CancelClient:
		s.cancelOperation(step.Line, f.Client)
		return
	case faults.ResumeClient:
		missed = s.clients[f.Client].aware()
	}
	_, restarts := f.(faults.RestartClient)
	restarts = restarts && s.world.Client(faults.TargetClient(f)).Crashed // otherwise the client is alive already
	if err := s.world.Apply(f); err != nil {
		s.fail(fmt.Errorf("harness: %s:%d: %w", s.script.Name, step.Line, err))
		return
	}
	switch f := f.(type) {
	case faults.Order:
		s.orders = append(s.orders, order{step.Line, f})
	case faults.CrashClient:
		c := s.clients[f.Client]
		c.busy, c.queue, c.calling, c.unaware = false, nil, false, false
		c.body.Kill()
	case faults.ResumeClient:
		if missed {
			s.clients[f.Client].cancel()
		}
	case faults.ClientClock:
		s.clients[f.Client].body.Skew(f.By.Of(s.ttl))
	case faults.RestartClient:
		if restarts {
			s.enter(f.Client, step.Line)
			s.setOut([]string{f.Client})
		}
	}
}

// noteUnmatched collects the gate commands and cancels without an effect.
func (s *runner) noteUnmatched() {
	s.metNothing = nil
	for i, met := range s.world.Met() {
		if o := s.orders[i]; met == 0 {
			s.metNothing = append(s.metNothing, UnmatchedStep{o.line, o.given.String(), o.given.About().OrNone})
		}
	}
	s.metNothing = inOrder(append(s.metNothing, s.idleCancels()...))
}
