package topology

import (
	"github.com/lockfault/lockfault/checker"
)

// Driver are what carries out a topology's decisions: a world. When a method is
// called the state is already as it will be, unless it says otherwise. An error
// says what couldn't be done; the deeds behind it that still make sense follow.
type Driver interface {
	// Record records an event at the present time, if Records.
	Record(checker.Event)
	Records() bool

	// StopClient stops a client's process, Continue lets it go on, End ends
	// it, and Revive makes ready for its next life.
	StopClient(*Client) error
	ContinueClient(*Client) error
	EndClient(*Client) error
	ReviveClient(*Client) error

	// Reshape lets what is on its way on a link that was slowed, or is no
	// longer, arrive at once.
	Reshape([]Link) error
	// Cut loses what is sent on a link from now on, as it says, and Mend ends
	// that. Connections that lost something are reset then.
	Cut([]Link)
	Mend([]Link)
	// CutNodes has what members of a cluster say to one another stand still, between those pairs, and MendNodes ends
	// that. They are called only if [Config] says that there are Peers.
	CutNodes([]Pair) error
	MendNodes([]Pair) error
	// Lead resets the connections of clients that belong to another server
	// of the node now, or to one that is at another address.
	Lead(*Node) error

	// Settle records that a lease on a server has run out, before something
	// happens to it that would be taken for the reason.
	Settle(*Server)
	// Observe records what became of the lock's key on a server that is up.
	Observe(*Server, checker.Cause)
	// Kill ends a server's process. Its connections end with it, but what it
	// had said to those who follow it arrives.
	Kill(*Server) error
	// Start starts it again, with the data that it had or empty. One that
	// has a leader connects to it.
	Start(s *Server, empty bool) error
	// Stop stops it: what comes for it waits. Continue lets it go on.
	Stop(*Server) error
	Continue(*Server) error
	// Elect returns which of these, at least one, got furthest, or which of
	// them was promoted.
	Elect(*Node, []*Server) (*Server, error)
	// Promote makes a follower a primary. What is on its way to it is lost.
	Promote(*Server) error
	// Follow ends the connection by which a server follows its leader, or
	// followed another, with what is on its way on it, and lets it connect
	// anew at once, or as soon as anything passes.
	Follow(*Server) error
	// Shape has the stream to a follower as its leader's Stream says. What
	// was slowed otherwise arrives at once.
	Shape(*Server) error
	// SetClock sets a server's clock, which was another one.
	SetClock(s *Server, was Clock) error
	// Operate executes a command of an operator, and records with that cause
	// what it did to the lock's key; with none, it can't have done anything.
	Operate(s *Server, cause checker.Cause, words ...string) error
	// Evict takes away the lock's key.
	Evict(*Server) error
}
