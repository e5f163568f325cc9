package faults

import (
	"context"
	"net"
	"time"
)

// A World is where a script happens: nodes, clients' links to them, clocks,
// and a gate in between. What it sees it records as events of the history.
//
// The methods that name a client are for that client's goroutines and may be
// called concurrently with everything; all others are for the one goroutine
// that plays the script.
type World interface {
	// ClientTime reads the client's wall clock. Where clients live in this process
	// it blocks while the client is paused, and once it crashed, until Close.
	ClientTime(client string) time.Time
	// Notify says that a client has something to show to the until function
	// of Run. It never blocks.
	Notify()

	// Begin ends the preparations: time starts at 0, and from now on the
	// world records.
	Begin()
	// Now returns the time since Begin.
	Now() time.Duration
	// Run lets the world go on until the function returns true or limit has
	// passed, and reports which. It calls until whenever something may have
	// changed, with no client running meanwhile in worlds of virtual time.
	Run(limit time.Duration, until func() bool) bool
	// Apply does the fault, at once. It returns an error that wraps
	// ErrUnsupported where this world can't.
	Apply(f Fault) error
	// MatchCounts returns how many messages each [Order] has met, in the order in
	// which they were applied: see [Gate.MatchCounts].
	Met() []int
	// Client says how the client is.
	Client(name string) ClientState
	// Holds reports whether the gate holds a message between the client and the node.
	Holds(client, node string) bool
	// Close ends the world: all connections are closed and everybody who is
	// blocked in it is set free with an error.
	Close() error
}

// A Dialer is a World whose clients live in this process and dial into it.
type Dialer interface {
	World
	// Dial connects the client to the node. It blocks as Wall does.
	Dial(ctx context.Context, client, node string) (net.Conn, error)
}

// ClientState is how a client is, seen from the world.
type ClientState struct {
	Paused, Crashed bool
	// Held is how many of its messages the gate holds.
	Held int
	// UnderWay is how many of its messages are travelling, waiting at a
	// door or held, and Lost how many were lost since Begin.
	UnderWay, Lost int
	// InHand is how many of its requests servers have that they answer as soon as they
	// get to it. In virtual time that is at once, and it is 0.
	InHand int
	// Replies is how many replies it received since Begin, but for those to
	// commands that only set a connection up, and RoundTrips
	// how often it sent something and had to wait for the answer; requests
	// sent together count once.
	Replies, RoundTrips int
	// PausedFor is how long it was paused since Begin, in all.
	PausedFor time.Duration
}
