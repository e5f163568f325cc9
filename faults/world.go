package faults

import (
	"context"
	"net"
	"time"
)

// World is where a script runs: nodes, the clients' links to them, clocks, and a gate in between. A
// World records what it observes as events of the history.
//
// ClientTime, Notify and [Dialer.Dial] are for the goroutines of clients and may be called
// concurrently with everything. All other methods are only for the goroutine that runs the script.
type World interface {
	// ClientTime reads the client's wall clock. If clients run in this process, ClientTime blocks
	// while the client is paused. After a crash it blocks until Close.
	ClientTime(client string) time.Time
	// Notify signals that a client has a change to show to the until function of Run. Notify never
	// blocks.
	Notify()

	// Begin ends the preparations: time starts at 0, and the world records from now on.
	Begin()
	// Now returns the time since Begin.
	Now() time.Duration
	// Run lets the world continue until the function returns true or limit has passed, and reports
	// whether the function returned true. Run calls until whenever something may have changed. In
	// worlds of virtual time no client runs during the call.
	Run(limit time.Duration, until func() bool) bool
	// Apply executes the fault at once. The error wraps ErrUnsupported if this world cannot execute
	// it.
	Apply(f Fault) error
	// Met returns how many messages each [Order] has matched, in the order in which the orders were
	// applied. See [Gate.MatchCounts].
	Met() []int
	// Client returns the state of the client.
	Client(name string) ClientState
	// Holds reports whether the gate holds a message between the client and the node.
	Holds(client, node string) bool
	// Close ends the world. Close closes all connections, and every call that is blocked in the
	// world returns with an error.
	Close() error
}

// Dialer is a World whose clients run in this process and connect through Dial.
type Dialer interface {
	World
	// Dial connects the client to the node. Like ClientTime it blocks while the client is paused,
	// and after a crash until Close.
	Dial(ctx context.Context, client, node string) (net.Conn, error)
}

// ClientState is the state of a client as its world observes it.
type ClientState struct {
	Paused, Crashed bool
	// Held is the number of the client's messages that the gate holds.
	Held int
	// UnderWay is the number of the client's messages that travel, wait to enter or are held. Lost
	// is the number of messages lost since Begin.
	UnderWay, Lost int
	// InHand is the number of the client's requests that servers have received and will answer
	// without further input. In virtual time servers answer at once, and InHand is 0.
	InHand int
	// Replies is the number of replies that the client received since Begin, except replies to
	// commands that only set up a connection. RoundTrips is how often the client sent something and
	// had to wait for the reply; requests sent together count once.
	Replies, RoundTrips int
	// PausedFor is the total time for which the client was paused since Begin.
	PausedFor time.Duration
}
