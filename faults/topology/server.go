package topology

import (
	"slices"
	"time"

	"github.com/lockfault/lockfault/faults"
)

// Node is an independent Redis: a primary and its replicas.
type Node struct {
	Name    string
	Servers []*Server
	Primary *Server
	// Rival is the second primary while the node is split; nil otherwise.
	Rival *Server

	split map[string]bool // the clients that are routed to Rival
}

// For returns the server to which the client of that name is routed.
func (n *Node) For(client string) *Server {
	if n.split[client] {
		return n.Rival
	}
	return n.Primary
}

// candidates returns the servers that can be promoted: replicas that are up and not stopped.
func (n *Node) candidates() (list []*Server) {
	for _, s := range n.Servers {
		if s.Leader != nil && s.Answers() {
			list = append(list, s)
		}
	}
	return list
}

// Server is a server process, running or not. Its name never changes, whatever its role is.
type Server struct {
	ID   int    // among all servers of the topology
	Name string // n1/0: the first primary of n1
	Node *Node
	// Up states that the process exists, and Paused that it is stopped.
	Up, Paused bool
	// Full states that the server denies commands that could use more memory.
	Full bool
	// Leader is the server that this server follows; nil for a primary.
	Leader *Server
	// Stream is the state of the replication to this server's followers.
	Stream Stream
	Clock  Clock

	late bool // it must be made to follow its leader when it resumes
}

// Answers reports whether the server's process is up and not stopped.
func (s *Server) Answers() bool { return s.Up && !s.Paused }

// Leads reports whether the server is up and has no leader. While a node is split, the primary and
// the rival both lead.
func (s *Server) Leads() bool { return s.Up && s.Leader == nil }

// Follows reports whether the server is up and a replica.
func (s *Server) Follows() bool { return s.Up && s.Leader != nil }

// Followers returns the servers that follow this server, up or not.
func (s *Server) Followers() []*Server {
	return slices.DeleteFunc(slices.Clone(s.Node.Servers), func(other *Server) bool { return other.Leader != s })
}

// Stream is the state of the replication from a primary to its followers. The zero value passes
// everything at the speed of the link. A Stream belongs to the primary: it survives a crash of
// either side and ends when the server is no longer the primary.
type Stream struct {
	// Stopped states that data that is sent waits.
	Stopped bool
	// Timeout, if not 0, states that data that is sent is lost, and that each connection closes
	// that long after its creation.
	Timeout time.Duration
	// Delay is how much later each effect arrives, plus or minus up to Jitter.
	Delay, Jitter time.Duration
	// Bandwidth is in bytes per second; 0 is unlimited.
	Bandwidth float64
}

// Passes reports whether the stream passes data.
func (s Stream) Passes() bool { return !s.Stopped && s.Timeout == 0 }

// Road returns the delay and bandwidth of the data that passes.
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

// Clock shows true time plus a skew, which grows by rate-1 per unit of time after since.
type Clock struct {
	skew  time.Duration
	rate  float64
	since time.Time
}

var trueTime = Clock{rate: 1}

// Rate returns the clock's rate as a multiple of true time.
func (c Clock) Rate() float64 { return c.rate }

// Offset returns the clock's offset from true time at then; positive is ahead.
func (c Clock) Offset(then time.Time) time.Duration {
	if c.rate == 1 {
		return c.skew
	}
	return c.skew + time.Duration(float64(then.Sub(c.since))*(c.rate-1))
}

// moved returns the clock after a jump.
func (c Clock) moved(by time.Duration) Clock {
	c.skew += by
	return c
}

// running returns the clock with another rate from now on.
func (c Clock) running(rate float64, now time.Time) Clock {
	return Clock{skew: c.Offset(now), rate: rate, since: now}
}
