// Package faults defines the faults that lockfault injects between lock clients and their servers,
// the gate that decides on every message, and the World interface.
//
// A [Fault] comes in through [World.Apply]; events for the history go out. The package imports only
// checker of this module, for the events. Scripts, the harness and the worlds all use its types.
// The package executes no fault by itself: its sub-packages contain the worlds.
package faults

import (
	"errors"
	"time"
)

// Fault is a change to a client, a node, a link or a clock, or an order to the gate. String returns
// the fault as scripts write it.
type Fault interface {
	String() string
	isFault()
}

// The faults of clients. A client is a whole process.
type (
	// PauseClient stops the process, as a long garbage collection or SIGSTOP does. Everything
	// stops, between and during its commands, timers included.
	PauseClient struct{ Client string }
	// ResumeClient continues a paused process.
	ResumeClient struct{ Client string }
	// CrashClient ends the process; its connections close.
	CrashClient struct{ Client string }
	// RestartClient starts the process of a crashed client again, without the memory of its former
	// run.
	RestartClient struct{ Client string }
	// CancelClient ends the context of the client's current operation, if it has one, as a caller
	// that gives up does. The harness that runs the script does this, because no World knows of
	// operations: for Apply it has no effect.
	CancelClient struct{ Client string }
	// ClientClock moves the client's wall clock by By, once.
	ClientClock struct {
		Client string
		By     Span
	}
)

// The faults of links between clients and nodes. An empty list means all.
type (
	// Latency sets the one-way delay of a message: Base plus or minus up to Jitter, drawn
	// separately for each message. Messages of one connection keep their order.
	Latency struct {
		Clients, Nodes []string
		Base, Jitter   Span
	}
	// Bandwidth limits each connection, in each direction, to Rate. A message occupies the line for
	// its length divided by Rate, after the messages before it, and then takes its latency. The
	// zero Rate removes the limit.
	Bandwidth struct {
		Clients, Nodes []string
		Rate           Rate
	}
	// Partition cuts links: messages on them are lost in both directions, and neither end is
	// notified.
	Partition struct{ Clients, Nodes []string }
	// Timeout cuts links as Partition does, but new connections can be made. Each connection is
	// closed in order, at both ends, After the later of its creation and the start of the fault.
	// The later of a Partition and a Timeout on one link applies.
	Timeout struct {
		Clients, Nodes []string
		After          Span
	}
	// Heal restores the links that Partition and Timeout cut. Without lists it restores every link,
	// including the links between nodes that PartitionNodes cut.
	Heal struct{ Clients, Nodes []string }
)

// The faults of links between nodes. They need nodes that communicate as members of a cluster.
type (
	// PartitionNodes cuts each of Nodes, at least one, off from each of From, in both directions.
	// An empty From means all other nodes. Data on a cut link waits, and neither end is notified.
	PartitionNodes struct{ Nodes, From []string }
	// HealNodes restores the links that PartitionNodes cut.
	HealNodes struct{ Nodes, From []string }
)

// The faults of nodes. CrashNode, RestartNode, PauseNode, ResumeNode, NodeClock and NodeDrift apply
// to the node's primary, or to a single server if Node is the name of a server: n1/1 is the first
// replica that n1 began with, whatever its present role is.
type (
	// CrashNode ends the node's server process; its connections are reset and new ones refused.
	CrashNode struct{ Node string }
	// RestartNode starts the server process again, with the data that it had or Empty. Leases
	// continue to run down while the process is down. After a failover the server comes back as a
	// replica of the new primary, with the new primary's data.
	RestartNode struct {
		Node  string
		Empty bool
	}
	// PauseNode stops the server process; messages to it wait.
	PauseNode struct{ Node string }
	// ResumeNode continues a paused server process.
	ResumeNode struct{ Node string }
	// Failover crashes the node's primary and promotes its most advanced replica, with the data
	// that was replicated by then. Clients are routed to the new primary.
	Failover struct{ Node string }
	// Split promotes a replica while the old primary stays up. The named clients are routed to the
	// new primary; all others stay with the old one.
	Split struct {
		Node    string
		Clients []string
	}
	// Join ends a split: the old primary becomes a replica of the new one and loses the data that
	// only the old primary had. All clients are routed to the new primary.
	Join struct{ Node string }
	// NodeClock moves the node's clock by By, once.
	NodeClock struct {
		Node string
		By   Span
	}
	// NodeDrift makes the node's clock run Rate times as fast as true time from now on. Rate must
	// be above 0 and at most [MaxRate].
	NodeDrift struct {
		Node string
		Rate float64
	}
	// Flush runs FLUSHALL on the node, as an operator would.
	Flush struct{ Node string }
	// Evict removes the lock's key, as maxmemory would.
	Evict struct{ Node string }
	// ScriptFlush runs SCRIPT FLUSH on the node, as an operator would.
	ScriptFlush struct{ Node string }
	// Replication stops, slows, breaks or restarts the stream from the node's primary to its
	// replicas. Each Mode uses the fields that its description names and leaves the others zero.
	Replication struct {
		Node   string
		Mode   ReplicationMode
		Delay  Span
		Jitter Span
		Rate   Rate
		After  Span
	}
)

// ReplicationMode selects what [Replication] does to the stream.
type ReplicationMode string

// The modes of [Replication].
const (
	ReplicationStop      ReplicationMode = "stop"      // nothing passes until start
	ReplicationStart     ReplicationMode = "start"     // ends stop, delay, bandwidth and timeout; the replicas catch up
	ReplicationDelay     ReplicationMode = "delay"     // each effect arrives Delay later, plus or minus up to Jitter
	ReplicationBandwidth ReplicationMode = "bandwidth" // the stream is limited to Rate
	ReplicationTimeout   ReplicationMode = "timeout"   // nothing passes until start, and each connection closes After its creation
	ReplicationReset     ReplicationMode = "reset"     // the connections are reset; the replicas reconnect and catch up
)

// Order is an instruction to the gate for a kind of message: a [Hold], [Delay], [Drop] or [Reset].
// Pass and Clear, which end orders, are not Orders.
type Order interface {
	Fault
	// About returns the match that selects the order's messages.
	About() Match
	order(ttl time.Duration) order
}

// The orders to the gate, and the faults that end orders.
type (
	// Hold stops matching messages at their destination, before they enter, until Pass.
	Hold struct {
		Match Match
		Times int // how many messages; 0 means every message
	}
	// Delay lets each matching message arrive By later.
	Delay struct {
		Match Match
		By    Span
		Times int
	}
	// Drop loses matching messages.
	Drop struct {
		Match Match
		Times int
	}
	// Reset loses a matching message and closes its connection: both ends see the close.
	Reset struct {
		Match Match
		Times int
	}
	// Pass delivers the held messages of the named clients, at once and in order of arrival, and
	// ends their holds. With Once it delivers only the message held longest and keeps the holds.
	// With Nodes it applies only to messages to or from these nodes. An empty list means all.
	Pass struct {
		Clients []string
		Once    bool
		Nodes   []string
	}
	// Clear ends all delays, drops and resets for the named clients, or for all clients if none is
	// named. Holds stay until Pass.
	Clear struct{ Clients []string }
)

// Way selects the stage of a message that a [Match] is about.
type Way string

// The ways of a message. Scripts use the same words.
const (
	Before   Way = "before"   // a request, before the node executes it
	After    Way = "after"    // a reply, after the node executed the request
	Messages Way = "messages" // a push to a client that subscribes or tracks keys
)

// Match selects messages.
type Match struct {
	Clients []string // the clients of the message; empty means every client
	Way     Way
	// Commands are the request's names in upper case; empty means any command except those that
	// only set up a connection. EVAL also matches EVALSHA, FCALL and their _RO forms. Commands are
	// ignored with Messages.
	Commands []string
	// Effect, if not empty, selects requests by their effect and replaces Commands. Effect is one
	// of the [Effects] of Way.
	Effect Effect
	Nodes  []string // to or from which; empty means any
	// OrNone states that the order may match no message: a run without a match still tests its
	// scenario.
	OrNone bool
}

// Quorum is the name that scripts give to the node whose reply completes a majority: n1 of one
// node, n3 of five.
const Quorum = "quorum"

// About returns the order's match. About implements [Order].
func (o Hold) About() Match { return o.Match }

// About returns the order's match. About implements [Order].
func (o Delay) About() Match { return o.Match }

// About returns the order's match. About implements [Order].
func (o Drop) About() Match { return o.Match }

// About returns the order's match. About implements [Order].
func (o Reset) About() Match { return o.Match }

func (PauseClient) isFault()    {}
func (ResumeClient) isFault()   {}
func (CrashClient) isFault()    {}
func (RestartClient) isFault()  {}
func (CancelClient) isFault()   {}
func (ClientClock) isFault()    {}
func (Latency) isFault()        {}
func (Bandwidth) isFault()      {}
func (Partition) isFault()      {}
func (Timeout) isFault()        {}
func (Heal) isFault()           {}
func (PartitionNodes) isFault() {}
func (HealNodes) isFault()      {}
func (CrashNode) isFault()      {}
func (RestartNode) isFault()    {}
func (PauseNode) isFault()      {}
func (ResumeNode) isFault()     {}
func (Failover) isFault()       {}
func (Split) isFault()          {}
func (Join) isFault()           {}
func (NodeClock) isFault()      {}
func (NodeDrift) isFault()      {}
func (Flush) isFault()          {}
func (Evict) isFault()          {}
func (ScriptFlush) isFault()    {}
func (Replication) isFault()    {}
func (Hold) isFault()           {}
func (Delay) isFault()          {}
func (Drop) isFault()           {}
func (Reset) isFault()          {}
func (Pass) isFault()           {}
func (Clear) isFault()          {}

// ErrUnsupported reports that a world cannot execute a fault.
var ErrUnsupported = errors.New("faults: not possible in this world")
