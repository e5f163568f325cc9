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

// A BudgetKind is a kind of fault that a search may inject, named like its flag.
type BudgetKind string

// The kinds of faults.
const (
	// Advance moves time to the end of the next lease on a server, while requests are in transit
	// and clients are between two requests.
	Advance BudgetKind = "advance"
	// Tick moves time by 0.4 TTLs: no lease has expired then, but a background extension is due.
	Tick BudgetKind = "tick"
	// Crash ends the process of a client that is in an operation or holds the lock.
	Crash BudgetKind = "crash"
	// ClientRestart does the same as Crash and restarts the client without its memory. The client
	// gets one more round in place of the interrupted one.
	ClientRestart BudgetKind = "client-restart"
	// Cancel cancels the context of the operation that a client is in.
	Cancel BudgetKind = "cancel"
	// Pause stops the process of a client that is in an operation or holds, for longer than a
	// lease. The client resumes at any later point.
	Pause BudgetKind = "pause"
	// LoseReply resets the connection of a request instead of delivering the reply. LoseRequest
	// resets the connection before the request arrives.
	LoseReply   BudgetKind = "lose-reply"
	LoseRequest BudgetKind = "lose-request"
	// Partition cuts a client off, from one node or from all nodes, for longer than a lease. The
	// partition heals at any later point.
	Partition BudgetKind = "partition"
	// Restart restarts a node's primary with its data, and RestartEmpty without its data.
	Restart      BudgetKind = "restart"
	RestartEmpty BudgetKind = "restart-empty"
	// Failover promotes a replica. Writes of the old primary may or may not have reached the
	// replica: replication may stop at any earlier point.
	Failover BudgetKind = "failover"
	// Flush runs FLUSHALL on a node.
	Flush BudgetKind = "flush"
	// ClientClock and NodeClock move a clock forward by more than a lease. NodeClockBack moves a
	// clock back so far that a lease lasts longer than any client should wait for the lock.
	ClientClock   BudgetKind = "client-clock"
	NodeClock     BudgetKind = "node-clock"
	NodeClockBack BudgetKind = "node-clock-back"
	// Hang makes the work of a holder never end, while another client asks for the lock. No
	// transition follows Hang.
	Hang BudgetKind = "hang"
)

// stopReplication is the rest of the line, after the node's name, that stops replication from a
// node.
const stopReplication = " replication stop"

// BudgetKinds returns all kinds of faults: those with a constant, and the others of nodes from the table
// of package faults.
func BudgetKinds() []BudgetKind {
	list := []BudgetKind{
		Advance, Tick, Crash, ClientRestart, Cancel, Pause, LoseReply, LoseRequest, Partition,
		Restart, RestartEmpty, Failover, Flush, ClientClock, NodeClock, NodeClockBack, Hang,
	}
	for _, s := range faults.NodeSearches() {
		if !slices.Contains(list, BudgetKind(s.Name)) {
			list = append(list, BudgetKind(s.Name))
		}
	}
	return list
}

// About returns a short description of what a kind of fault does.
func (f BudgetKind) About() string {
	switch f {
	case Advance:
		return "time advances to the end of a lease, at any moment"
	case Tick:
		return "time advances by 0.4 TTLs, at any moment"
	case Crash:
		return "a client crashes in an operation or while it holds the lock"
	case ClientRestart:
		return "a client crashes in an operation or while it holds the lock, and restarts for another round"
	case Cancel:
		return "the caller of a client's operation cancels the operation"
	case Pause:
		return "a client stops in an operation or while it holds the lock, for 1.1 TTLs or longer"
	case LoseReply:
		return "the reply to a request is lost, and its connection closes"
	case LoseRequest:
		return "a request is lost, and its connection closes"
	case Partition:
		return "a client in an operation or hold is cut off from one node or all nodes, for 1.1 TTLs or longer"
	case Failover:
		return "a replica is promoted, with the data that it has received"
	case ClientClock:
		return "a client's wall clock jumps ahead by 1.1 TTLs"
	case Hang:
		return "the work of a holder never ends, while another client requests the lock"
	}
	for _, s := range faults.NodeSearches() {
		if s.Name == string(f) {
			return s.Summary
		}
	}
	return ""
}

// Spans of time in TTLs. A lock schedules its timers after round spans: whole milliseconds or
// simple fractions of a lease. The spans here are not round, because when two timers are due at the
// same time, chance decides which fires first.
const (
	beyond = 1.107 // longer than a lease
	within = 0.403 // shorter than a lease, but an extension is due
	past   = 0.007 // added to the end of a lease
	moment = "0.0213ttl"
)

// A move is a transition that is possible in a state.
type move struct {
	lines  []string
	cost   BudgetKind // the kind of fault to take from the budget; empty for none
	fault  string     // recorded in searchNode.faults, because a snapshot does not show the history of clocks and links
	client int        // 1 + the index of the client that makes progress; 0 if more than one does
	begun  bool       // the client begins a round
	sends  bool       // the transition delivers a request
	to     string     // the node that receives the request
	closes bool       // no transition follows
}

// anywhere is the value of move.to for a transition that passes all requests of a client.
const anywhere = "*"

// settle returns the lines that wait until a client makes no more progress. A client that waits for
// the lock or for time gets a short moment. A client that is paused or cut off from all nodes makes
// no progress.
func (p *searchNode) settle(c harness.ClientView) []string {
	if c.Paused || slices.Contains(p.cuts(c.Name), "") {
		return []string{"wait 1µs"}
	}
	return awaited(c.Name)
}

// awaited returns the lines of settle for a client that is neither paused nor cut off.
func awaited(client string) []string {
	return []string{"await " + client + " held within " + moment, "wait 1µs"}
}

// A searchNode is a state together with the path that led to it.
type searchNode struct {
	trail     *path    // the path
	lines     []string // the path as lines, set while moves are generated if there are several nodes
	parts     parts
	moves     int
	requests  int
	rounds    []int              // rounds begun by each client
	idle      []bool             // clients that may begin a round now: see after
	spent     map[BudgetKind]int // faults taken from the budget
	budgetKey [2]string          // spent, encoded for the identity of the state
	faults    []string           // faults whose effect a snapshot does not show
	view      harness.Snapshot   // set while moves are generated
	closed    bool               // no transition follows; the node only shows what passing time reveals
	words     int32              // index of the faults in the tables
	memory    []int32            // numbers of the faults that can affect each client, then nodes
	shows     []checker.Anomaly
	suffered  []suffering      // what befell each client in its current round
	shards    *shardAssignment // the shards that explore the node; nil in a search without shards

	// The fields below are used until the state is known: where the transition began, the keys for
	// the lookup of its effect if it is local or spreads, whether the effect was known, and the
	// outcome.
	from           parts
	before         []int32 // memory at the beginning of the transition
	key            local
	nodes          []int
	local, spreads bool
	half           *splitMove
	known          bool
	outcome        *Outcome
	unjudged       bool     // server-side anomalies were not judged
	id             identity // set by arrive
}

// suffering is what befell a client while time passed. Whether the lock is to blame for an anomaly can
// depend on it.
type suffering uint8

const (
	stoodStill suffering = 1 << iota // the client was paused
	unheard                          // a message of the client was held
)

// suffers returns what has befallen the clients after a transition.
func (p *searchNode) suffers(m move) []suffering {
	list := p.suffered
	add := func(i int, s suffering) {
		if list[i]&s == 0 {
			list = slices.Clone(list)
			list[i] |= s
		}
	}
	if m.begun && list[m.client-1] != 0 {
		list = slices.Clone(list)
		list[m.client-1] = 0
	}
	if m.cost == "" {
		return list
	}
	for i, c := range p.view.Clients {
		if c.Paused || slices.Contains(m.lines, c.Name+" pause") {
			add(i, stoodStill)
		}
		if holds(p.view, c.Name) {
			add(i, unheard)
		}
	}
	return list
}

// moves returns the possible transitions in a fixed order. done reports whether only faults are
// left: all clients are done, and the passage of time may reveal what a client left behind.
func (b Bound) moves(p *searchNode) (list []move, done bool) {
	if p.closed {
		return nil, false
	}
	for i, c := range p.view.Clients {
		if holds(p.view, c.Name) {
			list = append(list, b.pass(p, i)...)
		}
		// An operation in the background does not prevent the client from starting another.
		switch {
		case c.Crashed || c.Busy || c.Paused:
		case c.Holding:
			list = append(list, move{lines: append([]string{c.Name + " write", "begin " + c.Name + " release"}, p.settle(c)...), client: i + 1})
			list = append(list, b.nestedMoves(p, i)...)
		case b.begins(p, i, &c):
			list = append(list, move{lines: append([]string{"begin " + c.Name + " try"}, p.settle(c)...), client: i + 1, begun: true})
		}
		list = append(list, p.recoveries(c)...)
	}
	waits := slices.ContainsFunc(p.view.Clients, func(c harness.ClientView) bool { return c.Busy && !c.Crashed })
	done = len(list) == 0 && !waits
	if len(list) == 0 && waits {
		list = append(list, move{lines: []string{"wait 0.1ttl"}}) // only faults could happen otherwise
	}
	return append(list, b.faults(p)...), done
}

// nestedMoves returns the other operations of a holder on the lock that it holds, each at most once
// per round.
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

// begins reports whether a client may begin a round next, in one of the explored orders. Clients
// are interchangeable until they begin, so the first client begins first.
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

// pass returns the ways to deliver a held request of a client: the oldest request, or the oldest
// one on each node.
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
			// Other requests of the client are held meanwhile and do not show that this one has
			// arrived. In real time, the script has to wait for this request and for its reply.
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
			// The gate has already received the request, so the link loses it: a link that has lost
			// data is reset when it heals.
			from := strings.Replace(on, " on ", " from ", 1)
			lost := slices.Concat([]string{"partition " + c.Name + from, pass, "heal " + c.Name + from}, p.settle(c))
			list = append(list, move{lines: lost, cost: LoseRequest, fault: c.Name + " loses a request" + on, client: i + 1})
		}
	}
	return list
}

// doors returns the nodes at which requests of a client wait, as suffixes of script lines such as "
// on n2". With one node the suffix is empty.
//
// Nodes that the path has not named are interchangeable as long as the same requests wait at them,
// so one of them is enough: the continuation at another node is the same with the two names
// exchanged.
func (b Bound) doors(p *searchNode, client string) []string {
	if b.Nodes < 2 {
		return []string{""}
	}
	var ends []string
	var known [][]faults.HeldView // requests waiting at nodes that were not named
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

// waiting returns the requests that the gate holds for a node, without the node's name.
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

// named reports whether a line of the path contains a node's name.
func (p *searchNode) named(node string) bool {
	return slices.ContainsFunc(p.lines, func(line string) bool { return slices.Contains(strings.Fields(line), node) })
}

// answers returns a line that waits for the reply to the next request of the client's operation.
// The line counts the requests delivered so far, plus one. The result is nil if a reply may have
// been lost.
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

// recoveries returns the transitions that end the faults of a client: the client resumes, or its
// partition heals. These transitions take from no budget.
func (p *searchNode) recoveries(c harness.ClientView) []move {
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

// cuts returns the nodes from which a client is cut off, as suffixes of script lines: "" for all
// nodes, or " from n2".
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

func (b Bound) left(p *searchNode, f BudgetKind) bool { return p.spent[f] < b.Budget[f] }

// faults returns the faults that may happen next, except those that affect a single message.
func (b Bound) faults(p *searchNode) []move {
	var list []move
	add := func(f BudgetKind, lines ...string) {
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
			list = append(list, b.clientFaults(p, c)...)
		}
		if b.left(p, ClientClock) && !c.Crashed {
			add(ClientClock, c.Name+" clock +1.1ttl")
		}
	}
	if b.left(p, Hang) {
		list = append(list, b.hangs(p)...)
	}
	searches := faults.NodeSearches()
	for i := range b.Nodes {
		n := faults.NodeName(i)
		for _, s := range searches {
			if f := BudgetKind(s.Name); b.left(p, f) {
				lines := make([]string, len(s.Lines))
				for i, line := range s.Lines {
					lines[i] = n + " " + line
				}
				add(f, lines...)
			}
		}
		if b.left(p, Failover) && b.Replicas > 0 {
			// Writes that were sent reach the replica, in every world; to lose them, a transition
			// stops replication earlier.
			list = append(list, move{lines: []string{"wait 0.01ttl", n + " failover", "wait 1µs"}, cost: Failover, fault: n + " failover"})
			if !p.stopped(n) {
				list = append(list, move{lines: []string{n + stopReplication}, fault: n + stopReplication})
			}
		}
	}
	return list
}

// hangs returns the transition in which the work of a holder never ends. The network passes
// everything, and another client asks for the lock for longer than any client should have to wait.
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

// freely returns the line that makes the network pass everything from then on.
func (b Bound) freely() string { return "pass " + strings.Join(b.names(), " ") }

// clientFaults returns the faults that may happen to a client that is in an operation or holds the
// lock.
func (b Bound) clientFaults(p *searchNode, c harness.ClientView) []move {
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

// away reports whether a fault on the path may explain why an operation waited in vain, so that the
// lock is not to blame.
func (p *searchNode) away() bool {
	for _, f := range []BudgetKind{Advance, Tick, Pause, LoseReply, LoseRequest, Partition, Restart, RestartEmpty, Failover} {
		if p.spent[f] > 0 {
			return true
		}
	}
	return slices.ContainsFunc(p.faults, func(fault string) bool { return strings.HasSuffix(fault, stopReplication) })
}

// stopped reports whether replication from a node is stopped: a failover ends the stop.
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

// jumps returns the spans by which Advance may move time. One ends at the expiry of the next key on
// a server. The other ends when a lease that begins now is over, for locks whose leases no server
// keeps.
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

// span formats a number of TTLs as scripts write it.
func span(ttls float64) string { return fmt.Sprintf("%gttl", math.Round(ttls*1000)/1000) }
