package topology

import (
	"github.com/lockfault/lockfault/checker"
)

// Driver carries out the decisions of a [Topology]. Each world implements one.
//
// When the Topology calls a method, its state is already the new state, unless the method's comment
// states otherwise. An error reports what failed; the Topology may still make the further calls
// that the same fault needs.
type Driver interface {
	// Record records an event at the present time. Records reports whether events are recorded at
	// all.
	Record(checker.Event)
	Records() bool

	// StopClient stops a client's process. ContinueClient continues it, EndClient ends it, and
	// ReviveClient prepares for its restart.
	StopClient(*Client) error
	ContinueClient(*Client) error
	EndClient(*Client) error
	ReviveClient(*Client) error

	// Reshape delivers at once the messages on their way on links whose latency or bandwidth has
	// changed.
	Reshape([]Link) error
	// Cut loses messages that are sent on the links from now on, as their [LinkState] states. Mend
	// ends the cut and resets the connections that lost messages.
	Cut([]Link)
	Mend([]Link)
	// CutNodes stops the data between each pair of cluster members, without loss. MendNodes ends
	// the stop. The Topology calls both only if [Config] sets Peers.
	CutNodes([]Pair) error
	MendNodes([]Pair) error
	// Lead resets the connections of clients that now belong to another server of the node, or to a
	// server whose address has changed.
	Lead(*Node) error

	// Settle records that a lease on a server has expired. The Topology calls Settle before it
	// changes the server, so that the history does not name the change as the cause of the expiry.
	Settle(*Server)
	// Observe records the present contents of the lock's keys on a server that is up, with their
	// cause.
	Observe(*Server, checker.Cause)
	// Kill ends a server's process and its connections. Data that the server has already sent to
	// its followers still arrives.
	Kill(*Server) error
	// Start starts a server's process again, with the data that it had or empty. A server with a
	// leader connects to it.
	Start(s *Server, empty bool) error
	// Stop stops a server's process; messages to it wait. Continue continues the process.
	Stop(*Server) error
	Continue(*Server) error
	// Elect returns the server to promote among these, at least one: the most advanced replica, or
	// the one that an external system has promoted.
	Elect(*Node, []*Server) (*Server, error)
	// Promote makes a follower a primary. Data on its way to the follower is lost.
	Promote(*Server) error
	// Follow ends a server's connection to its present or previous leader and loses the data on it.
	// The server reconnects at once, or as soon as its stream passes data.
	Follow(*Server) error
	// Shape applies the Stream of a follower's leader to the stream to this follower. Data that the
	// previous setting delayed arrives at once.
	Shape(*Server) error
	// SetClock sets a server's clock to s.Clock; was is the previous clock.
	SetClock(s *Server, was Clock) error
	// LimitMemory makes a server deny commands that could use more memory, or ends that, as s.Full
	// states.
	LimitMemory(*Server) error
	// Operate executes an operator's command, and records its effect on the lock's keys with that
	// cause. An empty cause means that the command cannot affect the keys. A refused command is an
	// error.
	Operate(s *Server, cause checker.Cause, words ...string) error
}

// NopDriver is a [Driver] without a world: its methods do nothing. Elect returns the first server.
// Drivers for a few methods embed it.
type NopDriver struct{}

func (NopDriver) Record(checker.Event)                            {}
func (NopDriver) Records() bool                                   { return false }
func (NopDriver) StopClient(*Client) error                        { return nil }
func (NopDriver) ContinueClient(*Client) error                    { return nil }
func (NopDriver) EndClient(*Client) error                         { return nil }
func (NopDriver) ReviveClient(*Client) error                      { return nil }
func (NopDriver) Reshape([]Link) error                            { return nil }
func (NopDriver) Cut([]Link)                                      {}
func (NopDriver) Mend([]Link)                                     {}
func (NopDriver) CutNodes([]Pair) error                           { return nil }
func (NopDriver) MendNodes([]Pair) error                          { return nil }
func (NopDriver) Lead(*Node) error                                { return nil }
func (NopDriver) Settle(*Server)                                  {}
func (NopDriver) Observe(*Server, checker.Cause)                  {}
func (NopDriver) Kill(*Server) error                              { return nil }
func (NopDriver) Start(*Server, bool) error                       { return nil }
func (NopDriver) Stop(*Server) error                              { return nil }
func (NopDriver) Continue(*Server) error                          { return nil }
func (NopDriver) Elect(_ *Node, among []*Server) (*Server, error) { return among[0], nil }
func (NopDriver) Promote(*Server) error                           { return nil }
func (NopDriver) Follow(*Server) error                            { return nil }
func (NopDriver) Shape(*Server) error                             { return nil }
func (NopDriver) SetClock(*Server, Clock) error                   { return nil }
func (NopDriver) LimitMemory(*Server) error                       { return nil }
func (NopDriver) Operate(*Server, checker.Cause, ...string) error { return nil }
