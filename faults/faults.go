// Package faults names what can go wrong between lock clients and Redis: the
// vocabulary of faults, the gate that decides on every message, and the World
// in which they happen. Its sub-packages are the worlds.
//
// A [Fault] comes in, through [World.Apply]; events for the history come out.
// Of this module the package imports only checker, for the events: scripts, the
// harness and the worlds all speak in its words.
package faults

import (
	"errors"
	"time"
)

// A Fault is something to do to a client, a node, a link or a clock, or an
// order to the gate. String returns it as scripts write it.
type Fault interface {
	String() string
	isFault()
}

// The faults of clients. A client is a whole process.
type (
	// PauseClient stops the process: everything between and around its
	// commands, timers included, as a long garbage collection or SIGSTOP.
	PauseClient struct{ Client string }
	// ResumeClient lets a paused process go on.
	ResumeClient struct{ Client string }
	// CrashClient ends the process; its connections close.
	CrashClient struct{ Client string }
	// RestartClient starts a crashed client's process anew, with no memory
	// of its former life.
	RestartClient struct{ Client string }
	// CancelClient ends the context of the operation that the client is in, if
	// it is in one, as when its caller gives up. Who plays the script does that,
	// for no World knows of operations: to Apply it is no fault.
	CancelClient struct{ Client string }
	// ClientClock moves the client's wall clock by By, once.
	ClientClock struct {
		Client string
		By     Span
	}
)

// The faults of links between clients and nodes. An empty list means all.
type (
	// Latency sets how long a message takes one way: Base plus or minus up
	// to Jitter, drawn anew for each message. Messages of one connection
	// keep their order.
	Latency struct {
		Clients, Nodes []string
		Base, Jitter   Span
	}
	// Bandwidth makes each connection, in each direction, a line of that
	// Rate: a message occupies it for its length divided by Rate, behind those
	// before it, and then takes its latency. The zero Rate ends it.
	Bandwidth struct {
		Clients, Nodes []string
		Rate           Rate
	}
	// Partition cuts links: messages on them are lost, in both directions,
	// and no end is told.
	Partition struct{ Clients, Nodes []string }
	// Timeout cuts links as Partition does, but new connections can be made,
	// and each connection is closed in order, at both ends, After it was made
	// or the fault began. Of Partition and Timeout the later one counts.
	Timeout struct {
		Clients, Nodes []string
		After          Span
	}
	// Heal mends what Partition and Timeout cut. With no lists it mends everything, also what
	// PartitionNodes cut.
	Heal struct{ Clients, Nodes []string }
)

// The faults of links between nodes, where nodes talk to one another because they are the members of a cluster.
type (
	// PartitionNodes cuts each of Nodes, at least one, off from each of From, in both directions; an empty From means
	// all nodes but itself. What is sent stands still, and no end is told.
	PartitionNodes struct{ Nodes, From []string }
	// HealNodes mends what PartitionNodes cut.
	HealNodes struct{ Nodes, From []string }
)

// The faults of nodes. CrashNode, RestartNode, PauseNode, ResumeNode, NodeClock
// and NodeDrift befall the node's primary, or one server if Node is its name:
// n1/1 is the first replica that n1 began with, whatever its role is now.
type (
	// CrashNode ends the node's server process; its connections are reset
	// and new ones refused.
	CrashNode struct{ Node string }
	// RestartNode starts it again, with the data that it had (its expiry
	// dates passed on meanwhile) or Empty. After a failover it comes back
	// as a replica of the new primary, with that one's data.
	RestartNode struct {
		Node  string
		Empty bool
	}
	// PauseNode stops the server process; messages wait at its door.
	PauseNode struct{ Node string }
	// ResumeNode lets it go on.
	ResumeNode struct{ Node string }
	// Failover crashes the node's primary and promotes its first replica
	// with whatever was replicated by then. Clients are led to it.
	Failover struct{ Node string }
	// Split promotes the replica while the old primary lives on. The named
	// clients are led to the new primary, all others stay with the old one.
	Split struct {
		Node    string
		Clients []string
	}
	// Join ends a split: the old primary becomes a replica of the new one,
	// loses what only it had, and everybody is led to the new one.
	Join struct{ Node string }
	// NodeClock moves the node's clock by By, once.
	NodeClock struct {
		Node string
		By   Span
	}
	// NodeDrift makes the node's clock run Rate times as fast as true time
	// from now on.
	NodeDrift struct {
		Node string
		Rate float64
	}
	// Flush is FLUSHALL on the node by an operator.
	Flush struct{ Node string }
	// Evict removes the lock's key, as maxmemory would.
	Evict struct{ Node string }
	// ScriptFlush is SCRIPT FLUSH on the node by an operator.
	ScriptFlush struct{ Node string }
	// Replication stops, slows, breaks or restarts the stream of the node's
	// primary to its replicas. Each Mode uses the fields that it names, and
	// leaves the others zero.
	Replication struct {
		Node   string
		Mode   ReplicationMode
		Delay  Span
		Jitter Span
		Rate   Rate
		After  Span
	}
)

// ReplicationMode says what [Replication] does to the stream.
type ReplicationMode string

// What can be done to the replication stream.
const (
	ReplicationStop      ReplicationMode = "stop"      // nothing passes until start
	ReplicationStart     ReplicationMode = "start"     // ends stop, delay, bandwidth and timeout; the replicas catch up
	ReplicationDelay     ReplicationMode = "delay"     // each effect arrives Delay later, plus or minus up to Jitter
	ReplicationBandwidth ReplicationMode = "bandwidth" // the stream is a line of that Rate
	ReplicationTimeout   ReplicationMode = "timeout"   // nothing passes until start, and connections close After they were made
	ReplicationReset     ReplicationMode = "reset"     // the connections are reset; the replicas connect anew and catch up
)

// An Order tells the gate what to do with messages of a kind: a [Hold], [Delay],
// [Drop] or [Reset]. Pass and Clear, which end orders, are none.
type Order interface {
	Fault
	// About returns which messages it is about.
	About() Match
	order(ttl time.Duration) order
}

// The orders to the gate, and what ends them.
type (
	// Hold stops matching messages at the door they arrive at, until Pass.
	Hold struct {
		Match Match
		Times int // how many messages; 0 means every one
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
	// Reset loses a matching message and its connection: both ends see it
	// closed.
	Reset struct {
		Match Match
		Times int
	}
	// Pass delivers, at once and in order of arrival, what is held of the
	// named clients, and ends their holds. Once delivers only the message
	// held longest and lets the holds stand. With Nodes only what goes to
	// these, or comes from them, is meant.
	Pass struct {
		Clients []string
		Once    bool
		Nodes   []string
	}
	// Clear ends all delays, drops and resets for the named clients, or for
	// all if none is named. Holds stay: they end with Pass.
	Clear struct{ Clients []string }
)

// Way says which messages a [Match] is about.
type Way string

// The ways of a message, by the words of scripts.
const (
	Before   Way = "before"   // a request, before the node executes it
	After    Way = "after"    // a reply, after the node executed the request
	Messages Way = "messages" // what a client receives because it subscribed, or tracks keys
)

// Match selects messages.
type Match struct {
	Clients []string // whose; empty means anybody's
	Way     Way
	// Commands are the request's names in upper case; empty means any. EVAL
	// also stands for EVALSHA and FCALL. Not used with Messages.
	Commands []string
	// Effect, if not empty, is what the request does, in place of Commands: one
	// of the [Effects] of that way.
	Effect Effect
	Nodes  []string // to or from which; empty means any
	// OrNone says that there may be no such message: a run in which none came
	// was about what it is about all the same.
	OrNone bool
}

// Quorum is the name that scripts give to the node whose answer completes a
// majority: n1 of one node, n3 of five.
const Quorum = "quorum"

// About implements [Order].
func (o Hold) About() Match { return o.Match }

// About implements [Order].
func (o Delay) About() Match { return o.Match }

// About implements [Order].
func (o Drop) About() Match { return o.Match }

// About implements [Order].
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

// ErrUnsupported says that a world can't do a fault.
var ErrUnsupported = errors.New("faults: not possible in this world")
