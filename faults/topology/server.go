package topology

import (
	"slices"
	"time"

	"github.com/lockfault/lockfault/faults"
)

// A Node is an independent Redis: a primary and its replicas.
type Node struct {
	Name    string
	Servers []*Server
	Primary *Server
	// Rival is a second server that thinks it is the primary, while the node
	// is split; nil otherwise.
	Rival *Server

	split map[string]bool // the clients that are led to it
}

// For returns the server that a client of that name is led to.
func (n *Node) For(client string) *Server {
	if n.split[client] {
		return n.Rival
	}
	return n.Primary
}

// candidates returns who can be promoted: the replicas that are up and not
// stopped.
func (n *Node) candidates() (list []*Server) {
	for _, s := range n.Servers {
		if s.Leader != nil && s.Answers() {
			list = append(list, s)
		}
	}
	return list
}

// Server is one server process, or where one was. It keeps its name for good,
// whatever its role becomes.
type Server struct {
	ID   int    // among all servers of the topology
	Name string // n1/0: the first primary of n1
	Node *Node
	// Up says that there is a process, and Paused that it is stopped.
	Up, Paused bool
	// Leader is whom it follows; nil if it takes itself for a primary.
	Leader *Server
	// Stream is how what it does passes to its followers.
	Stream Stream
	Clock  Clock

	late bool // it must be told to follow, when it goes on
}

// Answers reports whether its process is there and not stopped.
func (s *Server) Answers() bool { return s.Up && !s.Paused }

// Leads reports whether it is up and takes itself for a primary.
func (s *Server) Leads() bool { return s.Up && s.Leader == nil }

// Follows reports whether it is up and a replica.
func (s *Server) Follows() bool { return s.Up && s.Leader != nil }

// Followers returns who follows it, up or not.
func (s *Server) Followers() []*Server {
	return slices.DeleteFunc(slices.Clone(s.Node.Servers), func(other *Server) bool { return other.Leader != s })
}

// A Stream is how what a primary does passes to its followers. The zero value
// passes everything as fast as the link is. It is the primary's: it outlives
// the crash of either side, and ends when the primary does no longer lead.
type Stream struct {
	// Stopped says that what sets out waits.
	Stopped bool
	// Timeout says that what sets out is lost, and that a connection closes
	// so long after it was made; 0 says that it isn't so.
	Timeout time.Duration
	// Each effect arrives later by Delay, plus or minus up to Jitter.
	Delay, Jitter time.Duration
	// Bandwidth is in bytes per second; 0 is unlimited.
	Bandwidth float64
}

// Passes reports whether anything passes.
func (s Stream) Passes() bool { return !s.Stopped && s.Timeout == 0 }

// Road returns how fast what passes, passes.
func (s Stream) Road() LinkState {
	return LinkState{Base: s.Delay, Jitter: s.Jitter, Bandwidth: s.Bandwidth}
}

// with returns the stream after the fault.
func (s Stream) with(f faults.Replication, ttl time.Duration) Stream {
	switch f.Mode {
	case faults.ReplicationStop:
		s.Stopped, s.Timeout = true, 0
	case faults.ReplicationStart:
		return Stream{}
	case faults.ReplicationDelay:
		s.Delay, s.Jitter = f.Delay.Of(ttl), f.Jitter.Of(ttl)
	case faults.ReplicationBandwidth:
		s.Bandwidth = f.Rate.PerSecond(ttl)
	case faults.ReplicationTimeout:
		s.Stopped, s.Timeout = false, f.After.Of(ttl)
	}
	return s
}

// A Clock shows true time plus a skew, which grows by rate-1 for each unit of
// time since a moment.
type Clock struct {
	skew  time.Duration
	rate  float64
	since time.Time
}

var trueTime = Clock{rate: 1}

// Rate is how many times as fast as true time it runs.
func (c Clock) Rate() float64 { return c.rate }

// Offset returns by how much it is ahead of true time then.
func (c Clock) Offset(then time.Time) time.Duration {
	if c.rate == 1 {
		return c.skew
	}
	return c.skew + time.Duration(float64(then.Sub(c.since))*(c.rate-1))
}

// moved returns the clock as it is after a jump.
func (c Clock) moved(by time.Duration) Clock {
	c.skew += by
	return c
}

// running returns the clock that runs at another rate from now on.
func (c Clock) running(rate float64, now time.Time) Clock {
	return Clock{skew: c.Offset(now), rate: rate, since: now}
}
