package explore

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/lockfault/lockfault/checker"
	"github.com/lockfault/lockfault/faults"
	"github.com/lockfault/lockfault/internal/harness"
)

// A Fault is a kind of fault that a search may be allowed, by the name of its flag.
type Fault string

// The kinds of faults.
const (
	// Advance lets time go on to the end of the next lease on a server, while
	// requests are on their way and clients stand between two of theirs.
	Advance Fault = "advance"
	// Tick lets time go on by 0.4 TTLs: a lease is not over then, and what a lock does
	// in the background to prolong it is due.
	Tick Fault = "tick"
	// Crash ends a client that is in the middle of something, or holds.
	Crash Fault = "crash"
	// ClientRestart does so, too, and the client comes back without a memory, with a
	// round in place of the one that it was in.
	ClientRestart Fault = "client-restart"
	// Cancel ends the context of the operation that a client is in.
	Cancel Fault = "cancel"
	// Pause stops the process of such a client for longer than a lease. It goes on
	// whenever it likes after that.
	Pause Fault = "pause"
	// LoseReply resets the connection of a request instead of answering it, and
	// LoseRequest does so before it has arrived.
	LoseReply   Fault = "lose-reply"
	LoseRequest Fault = "lose-request"
	// Partition cuts a client off, from a node or from all, for longer than a lease.
	// That is mended at any time after.
	Partition Fault = "partition"
	// Restart ends a node's primary, which comes back with its data, and
	// RestartEmpty without.
	Restart      Fault = "restart"
	RestartEmpty Fault = "restart-empty"
	// Failover promotes a replica. What a primary writes may or may not have
	// reached it: its stream may be stopped at any time before.
	Failover Fault = "failover"
	// Flush is FLUSHALL on a node.
	Flush Fault = "flush"
	// ClientClock and NodeClock set a clock ahead by more than a lease, and NodeClockBack
	// sets one back, by so much that a lease lasts longer than anybody should wait for one.
	ClientClock   Fault = "client-clock"
	NodeClock     Fault = "node-clock"
	NodeClockBack Fault = "node-clock-back"
	// Hang has the work of a holder never end, while another asks for the lock. Nothing
	// follows.
	Hang Fault = "hang"
)

// stopReplication is what is said of a node from which nothing reaches a replica any
// more.
const stopReplication = " replication stop"

// Faults returns the kinds of faults, in the order in which moves are made of them.
func Faults() []Fault {
	return []Fault{
		Advance, Tick, Crash, ClientRestart, Cancel, Pause, LoseReply, LoseRequest, Partition,
		Restart, RestartEmpty, Failover, Flush, ClientClock, NodeClock, NodeClockBack, Hang,
	}
}

// About says in a few words what a kind of fault does.
func (f Fault) About() string {
	switch f {
	case Advance:
		return "time goes on to the end of a lease, at any moment"
	case Tick:
		return "time goes on by 0.4 TTLs, at any moment"
	case Crash:
		return "a client crashes in the middle of something"
	case ClientRestart:
		return "a client crashes in the middle of something and comes back, for another round"
	case Cancel:
		return "the caller of a client's operation gives up in the middle of it"
	case Pause:
		return "a client stops in the middle of something, for 1.1 TTLs or longer"
	case LoseReply:
		return "the answer to a request is lost, with its connection"
	case LoseRequest:
		return "a request is lost, with its connection"
	case Partition:
		return "a client in the middle of something is cut off, from a node or from all, for 1.1 TTLs or longer"
	case Restart:
		return "a node restarts with its data"
	case RestartEmpty:
		return "a node restarts without its data"
	case Failover:
		return "a replica is promoted, with what has reached it"
	case Flush:
		return "a node is flushed"
	case ClientClock:
		return "a client's wall clock jumps ahead by 1.1 TTLs"
	case NodeClock:
		return "a node's clock jumps ahead by 1.1 TTLs"
	case NodeClockBack:
		return "a node's clock goes back by 2.1 TTLs"
	case Hang:
		return "the work of a holder never ends, while another asks for the lock"
	}
	return ""
}

// These are spans in TTLs. What a lock does by the clock it does after round ones, of
// milliseconds or parts of a lease, and where two things happen at the same time, chance
// decides which comes first.
const (
	beyond = 1.107 // a lease is over
	within = 0.403 // it is not, but what prolongs it is due
	past   = 0.007 // this is added to the end of a lease
	moment = "0.0213ttl"
)

// A move is what may happen next.
type move struct {
	lines  []string
	cost   Fault  // which budget it takes from; empty for none
	fault  string // what is remembered of it: clocks and links have no memory that a view shows
	client int    // 1 + the number of the client that it lets go on; 0 if it is about more than one
	begun  bool   // that client begins a round
	sends  bool   // it delivers a request
	to     string // the node that it delivers it to
	closes bool   // nothing follows
}

// anywhere is where a move delivers that lets all requests of a client through.
const anywhere = "*"

// settle are the lines after which a client has come as far as it gets. One that
// waits for the lock, or for time, gets a moment. One that is stopped, or whom nobody hears,
// gets nowhere.
func (p *searchNode) settle(c harness.ClientView) []string {
	if c.Paused || slices.Contains(p.cuts(c.Name), "") {
		return []string{"wait 1µs"}
	}
	return awaited(c.Name)
}

// awaited is settle for a client that is not stopped.
func awaited(client string) []string {
	return []string{"await " + client + " held within " + moment, "wait 1µs"}
}

// searchNode is a state with what led to it.
type searchNode struct {
	trail     *path    // the path
	lines     []string // it, while moves are made from here, where they depend on it: on several nodes
	parts     parts
	moves     int
	requests  int
	rounds    []int            // how many each client has begun
	idle      []bool           // which clients may begin one now: see after
	spent     map[Fault]int    // of the budget
	budgetKey [2]string        // that, as a state is known by it
	faults    []string         // what happened that a view doesn't show
	view      harness.Snapshot // once moves are made from here
	closed    bool             // nothing follows: it is only looked at what time brings
	words     int32            // the number of the faults
	memory    []int32          // of those that each client can remember, then of those that nodes can
	shows     []checker.Anomaly
	shards    *shardAssignment // which shards follow it; nil in a search that has none

	// Until it is known where this is: where the move began, by what it is looked up
	// if it is local or spreads, whether it was, and what came of it.
	from           parts
	before         []int32 // memory then
	key            local
	nodes          []int
	local, spreads bool
	half           *splitMove
	known          bool
	outcome        *Outcome
	unjudged       bool     // what is wrong with servers was not judged
	id             identity // once it has arrived
}

// moves returns what may happen next, in one order, and reports whether it is only faults:
// everybody is done, and time may show what was forgotten.
func (b Bound) moves(p *searchNode) (list []move, done bool) {
	if p.closed {
		return nil, false
	}
	for i, c := range p.view.Clients {
		if holds(p.view, c.Name) {
			list = append(list, b.pass(p, i)...)
		}
		// What it does in the background keeps it from nothing.
		switch {
		case c.Crashed || c.Busy || c.Paused:
		case c.Holding:
			list = append(list, move{lines: append([]string{c.Name + " write", "begin " + c.Name + " release"}, p.settle(c)...), client: i + 1})
			list = append(list, b.nestedMoves(p, i)...)
		case b.begins(p, i, &c):
			list = append(list, move{lines: append([]string{"begin " + c.Name + " try"}, p.settle(c)...), client: i + 1, begun: true})
		}
		list = append(list, p.mends(c)...)
	}
	waits := slices.ContainsFunc(p.view.Clients, func(c harness.ClientView) bool { return c.Busy && !c.Crashed })
	done = len(list) == 0 && !waits
	if len(list) == 0 && waits {
		list = append(list, move{lines: []string{"wait 0.1ttl"}}) // for nothing but faults can happen
	}
	return append(list, b.faults(p)...), done
}

// nestedMoves returns what else a holder may do with the lock that it has, once in a round.
func (b Bound) nestedMoves(p *searchNode, i int) []move {
	c := p.view.Clients[i]
	var list []move
	add := func(op string) {
		did := fmt.Sprintf("%s %s in round %d", c.Name, op, p.rounds[i])
		if !slices.Contains(p.faults, did) {
			list = append(list, move{lines: append([]string{"begin " + c.Name + " " + op}, p.settle(c)...), fault: did, client: i + 1})
		}
	}
	if b.Extend {
		add("extend")
	}
	if b.Reenter {
		add("try")
	}
	return list
}

// begins reports whether a client begins a round next, in one of the orders that are
// looked at. Clients are alike until they begin, so the first does so first.
func (b Bound) begins(p *searchNode, i int, c *harness.ClientView) bool {
	rounds := b.Rounds
	for _, fault := range p.faults {
		if fault == c.Name+" restart" {
			rounds++
		}
	}
	able := !c.Busy && !c.Crashed && !c.Paused && !c.Holding && p.rounds[i] < rounds
	return able && (b.plain || p.idle[i] && (i == 0 || p.rounds[i-1] > 0))
}

// pass returns the ways in which a client's request can be delivered: the oldest, or the
// oldest on each node.
func (b Bound) pass(p *searchNode, i int) []move {
	c := p.view.Clients[i]
	var list []move
	for _, on := range b.doors(p, c.Name) {
		pass, to := "pass "+c.Name+" once"+on, strings.TrimPrefix(on, " on ")
		if on == "" {
			to = p.view.Held[slices.IndexFunc(p.view.Held, func(m faults.HeldView) bool { return m.Client == c.Name })].Node
		}
		lines := append([]string{pass}, p.settle(c)...)
		answered := lines
		if on != "" {
			// Others of its requests are held meanwhile, which says nothing of this one: in
			// real time it is waited for, and so is its answer.
			arrived := "await " + c.Name + " held" + on + " within " + moment
			lines = append([]string{arrived}, lines...)
			answered = slices.Concat([]string{arrived, pass}, p.answers(c), p.settle(c))
		}
		list = append(list, move{lines: answered, client: i + 1, sends: true, to: to})
		if b.left(p, LoseReply) && !c.Crashed {
			lost := append([]string{"reset " + c.Name + " after any" + on + " times 1"}, lines...)
			list = append(list, move{lines: lost, cost: LoseReply, fault: lost[0], client: i + 1, sends: true, to: to})
		}
		if b.left(p, LoseRequest) && !c.Crashed && len(p.cuts(c.Name)) == 0 {
			// The gate has let it in as far as its door, so it is the link that loses it: a
			// link that has lost something is reset when it is mended.
			from := strings.Replace(on, " on ", " from ", 1)
			lost := slices.Concat([]string{"partition " + c.Name + from, pass, "heal " + c.Name + from}, p.settle(c))
			list = append(list, move{lines: lost, cost: LoseRequest, fault: c.Name + " loses a request" + on, client: i + 1})
		}
	}
	return list
}

// doors returns where a client's requests wait, as the ends of orders that mean one of
// these nodes: " on n2". With one node there is nothing to say.
//
// Nodes that the path has not named are alike as long as the same waits there, so of
// those one is enough: what follows on another is the same with the two names
// exchanged.
func (b Bound) doors(p *searchNode, client string) []string {
	if b.Nodes < 2 {
		return []string{""}
	}
	var ends []string
	var known [][]faults.HeldView // what waits at nodes that were not named
	for i := range b.Nodes {
		n := faults.NodeName(i)
		held := waiting(p.view, n)
		if !slices.ContainsFunc(held, func(m faults.HeldView) bool { return m.Client == client }) {
			continue
		}
		if !b.plain && !p.named(n) {
			if slices.ContainsFunc(known, func(other []faults.HeldView) bool { return slices.Equal(other, held) }) {
				continue
			}
			known = append(known, held)
		}
		ends = append(ends, " on "+n)
	}
	return ends
}

// waiting returns what the gate holds of a node, without its name.
func waiting(v harness.Snapshot, node string) []faults.HeldView {
	var held []faults.HeldView
	for _, m := range v.Held {
		if m.Node == node {
			m.Node = ""
			held = append(held, m)
		}
	}
	return held
}

// named reports whether a line of the path is about a node by its name.
func (p *searchNode) named(node string) bool {
	return slices.ContainsFunc(p.lines, func(line string) bool { return slices.Contains(strings.Fields(line), node) })
}

// answers waits for as many answers as a client's operation has had requests delivered,
// with one more; not where one may have been lost.
func (p *searchNode) answers(c harness.ClientView) []string {
	requests := 1
	for _, line := range slices.Backward(p.lines) {
		switch {
		case strings.HasPrefix(line, "begin "+c.Name+" "):
			return []string{fmt.Sprintf("await %s replies %d within %s", c.Name, requests, moment)}
		case strings.HasPrefix(line, "pass "+c.Name+" "):
			requests++
		case strings.HasPrefix(line, "reset "+c.Name+" "), strings.HasPrefix(line, "partition "+c.Name), line == c.Name+" pause", line == c.Name+" crash", line == c.Name+" cancel":
			return nil
		}
	}
	return nil
}

// mends returns how what befell a client ends: it goes on, or is no longer cut off. That
// takes from no budget.
func (p *searchNode) mends(c harness.ClientView) []move {
	var list []move
	if c.Paused && !c.Crashed {
		c.Paused = false
		list = append(list, move{lines: append([]string{c.Name + " resume"}, p.settle(c)...)})
	}
	for _, from := range p.cuts(c.Name) {
		heal := "heal " + c.Name + from
		list = append(list, move{lines: append([]string{heal}, awaited(c.Name)...), fault: heal})
	}
	return list
}

// cuts returns from where a client is cut off, as the ends of orders: empty for all nodes,
// or " from n2".
func (p *searchNode) cuts(client string) []string {
	var cuts []string
	for _, fault := range p.faults {
		if from, ok := strings.CutPrefix(fault, "partition "+client); ok {
			cuts = append(cuts, from)
		}
		if from, ok := strings.CutPrefix(fault, "heal "+client); ok {
			cuts = slices.DeleteFunc(cuts, func(cut string) bool { return cut == from })
		}
	}
	return cuts
}

// holds reports whether the gate holds a request of a client.
func holds(v harness.Snapshot, client string) bool {
	return slices.ContainsFunc(v.Held, func(m faults.HeldView) bool { return m.Client == client })
}

func (b Bound) left(p *searchNode, f Fault) bool { return p.spent[f] < b.Budget[f] }

// faults returns the faults that may happen next, other than those of a message.
func (b Bound) faults(p *searchNode) []move {
	var list []move
	add := func(f Fault, lines ...string) {
		list = append(list, move{lines: append(lines, "wait 1µs"), cost: f, fault: lines[0]})
	}
	if b.left(p, Advance) {
		for _, span := range b.jumps(p.view) {
			list = append(list, move{lines: []string{"wait " + span}, cost: Advance})
		}
	}
	if b.left(p, Tick) {
		list = append(list, move{lines: []string{"wait " + span(within)}, cost: Tick})
	}
	for _, c := range p.view.Clients {
		if !c.Crashed && (c.Busy || c.Holding) {
			list = append(list, b.misfortunes(p, c)...)
		}
		if b.left(p, ClientClock) && !c.Crashed {
			add(ClientClock, c.Name+" clock +1.1ttl")
		}
	}
	if b.left(p, Hang) {
		list = append(list, b.hangs(p)...)
	}
	for i := range b.Nodes {
		n := faults.NodeName(i)
		if b.left(p, Restart) {
			add(Restart, n+" crash", n+" restart")
		}
		if b.left(p, RestartEmpty) {
			add(RestartEmpty, n+" crash", n+" restart empty")
		}
		if b.left(p, Flush) {
			add(Flush, n+" flush")
		}
		if b.left(p, NodeClock) {
			add(NodeClock, n+" clock +1.1ttl")
		}
		if b.left(p, NodeClockBack) {
			add(NodeClockBack, n+" clock -2.1ttl")
		}
		if b.left(p, Failover) && b.Replicas > 0 {
			// What has set out gets there, in every world; what shall not is stopped before.
			list = append(list, move{lines: []string{"wait 0.01ttl", n + " failover", "wait 1µs"}, cost: Failover, fault: n + " failover"})
			if !p.stopped(n) {
				list = append(list, move{lines: []string{n + stopReplication}, fault: n + stopReplication})
			}
		}
	}
	return list
}

// hangs returns how the work of a holder may never end: while the network is in nobody's way, another asks for the lock
// for longer than anybody should be kept waiting.
func (b Bound) hangs(p *searchNode) []move {
	if !slices.ContainsFunc(p.view.Clients, func(c harness.ClientView) bool { return c.Holding && !c.Paused }) {
		return nil
	}
	i := slices.IndexFunc(p.view.Clients, func(c harness.ClientView) bool {
		return !c.Crashed && !c.Busy && !c.Paused && !c.Holding && len(p.cuts(c.Name)) == 0
	})
	if i < 0 {
		return nil
	}
	return []move{{lines: []string{b.freely(), p.view.Clients[i].Name + " acquire within 5.503ttl"}, cost: Hang, closes: true}}
}

// freely is the line from which on the network lets all through.
func (b Bound) freely() string { return "pass " + strings.Join(b.names(), " ") }

// misfortunes returns the faults that may befall a client that is in the middle of
// something, or holds.
func (b Bound) misfortunes(p *searchNode, c harness.ClientView) []move {
	var list []move
	if b.left(p, Crash) {
		list = append(list, move{lines: []string{c.Name + " crash", "wait 1µs"}, cost: Crash, fault: c.Name + " crash"})
	}
	if b.left(p, ClientRestart) {
		lines := append([]string{c.Name + " crash", c.Name + " restart"}, awaited(c.Name)...)
		list = append(list, move{lines: lines, cost: ClientRestart, fault: c.Name + " restart"})
	}
	if b.left(p, Cancel) && c.Busy && !c.Paused {
		list = append(list, move{lines: append([]string{c.Name + " cancel"}, p.settle(c)...), cost: Cancel, client: slices.Index(b.names(), c.Name) + 1})
	}
	if b.left(p, Pause) && !c.Paused {
		list = append(list, move{lines: []string{c.Name + " pause", "wait " + span(beyond)}, cost: Pause})
	}
	if b.left(p, Partition) && len(p.cuts(c.Name)) == 0 {
		from := []string{""}
		for i := range b.Nodes {
			if b.Nodes > 1 {
				from = append(from, " from "+faults.NodeName(i))
			}
		}
		for _, from := range from {
			cut := "partition " + c.Name + from
			list = append(list, move{lines: []string{cut, "wait " + span(beyond)}, cost: Partition, fault: cut})
		}
	}
	return list
}

// away reports whether something that happened may be why an operation waited in vain,
// other than the lock.
func (p *searchNode) away() bool {
	for _, f := range []Fault{Advance, Tick, Pause, LoseReply, LoseRequest, Partition, Restart, RestartEmpty, Failover} {
		if p.spent[f] > 0 {
			return true
		}
	}
	return slices.ContainsFunc(p.faults, func(fault string) bool { return strings.HasSuffix(fault, stopReplication) })
}

// stopped reports whether nothing reaches a node's replicas: a promotion ends that.
func (p *searchNode) stopped(node string) bool {
	for _, fault := range slices.Backward(p.faults) {
		switch fault {
		case node + stopReplication:
			return true
		case node + " failover":
			return false
		}
	}
	return false
}

// jumps returns the spans that time may go on by: to where the next key on a server
// will be gone, and to where a lease that begins now is over, for locks whose leases
// no server knows.
func (b Bound) jumps(v harness.Snapshot) []string {
	spans := []string{span(beyond)}
	var next time.Duration
	for _, s := range v.Servers {
		if s.Up && s.Leads && s.Next > 0 && (next == 0 || s.Next < next) {
			next = s.Next
		}
	}
	if next == 0 {
		return spans
	}
	tenths := math.Ceil(float64(next-v.Now)/float64(b.TTL)*10 + 0.5)
	if to := span(max(1, tenths)/10 + past); to != spans[0] {
		spans = append(spans, to)
	}
	return spans
}

// span returns a number of TTLs as scripts write it.
func span(ttls float64) string { return fmt.Sprintf("%gttl", math.Round(ttls*1000)/1000) }
