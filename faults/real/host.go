package real

import (
	"context"
	"errors"
	"time"
)

// ErrNoClock says that a host can't move its servers' clocks here: it has no
// compiler for the shim, or the server doesn't take it. Its reason follows.
var ErrNoClock = errors.New("servers' clocks can't be moved")

// A Host starts Redis servers for a world, or finds them. Its methods, and those
// of its servers, may be called concurrently.
type Host interface {
	// Start starts a server, which is [ManagedServer] then or a [UnmanagedServer], and returns when it answers PING, which says
	// nothing yet about a replica having what its primary has. It blocks
	// until then, or until ctx is done or the server has ended: the error
	// says why, in one line. If spec.Clock can't be had, the error wraps
	// [ErrNoClock].
	Start(ctx context.Context, spec ServerSpec) (Server, error)
	// Close ends every server that the host started, paused ones too, waits
	// for their ends and removes what they left, logs included; or takes them
	// back. A Start under way fails. Idempotent.
	Close() error
}

// A LendingHost is a [Host] whose servers outlast a world. They have a password
// already.
type LendingHost interface {
	Host
	Password() string
}

// A ServerSpec says what server to start. Name and Password must be set.
type ServerSpec struct {
	// Name is n1, n1-r1 and the like: unique in the world. It names the
	// server's directory and log.
	Name string
	// Node is the node that it belongs to, for hosts that keep nodes apart;
	// empty means one of its own.
	Node string
	// Password is what clients and replicas must show, and what it shows as a
	// replica.
	Password string
	// Replica says that it will be told to follow another as soon as it is there. Hosts whose servers
	// begin as primaries, and are then told, need not know.
	Replica bool
	// Clock says that its clock will be moved.
	Clock bool
}

// A Server is one Redis server.
type Server interface {
	// Addr is its host:port on loopback.
	Addr() string
}

// An ManagedServer server is this world's own, running or not: it takes orders.
type ManagedServer interface {
	// Server says where it is. Restart may change that.
	Server
	// Pause stops the process until Resume, and returns when it has stopped.
	// What it was sent waits meanwhile. No effect on one that is paused; an
	// error if it has ended.
	Pause() error
	// Resume lets a paused process go on. No effect on one that is not
	// paused; an error if it has ended.
	Resume() error
	// Kill ends the process at once, paused or not, and returns when it has
	// ended. No effect on one that has.
	Kill() error
	// Restart starts a server that has ended again, with what it had
	// written or empty, as a primary: whom it follows is the world's to say.
	// It returns as Start does. Its clock stays as it was set. An error if it
	// has not ended.
	Restart(ctx context.Context, empty bool) error
	// SetClock sets the server's wall clock to true time plus offset at
	// this moment, running rate times as fast as true time from now on; the
	// clocks by which it measures spans run at that rate too, and never
	// jump. 0, 1 is true time. An error if it was started without a Clock.
	SetClock(offset time.Duration, rate float64) error
}

// A GatewayHost is a [Host] whose servers can't reach the loopback interface of
// this machine, where links listen otherwise.
type GatewayHost interface {
	Host
	// Gateway returns the IP address of this machine at which the servers of
	// that node reach what listens there, before or after they are started.
	Gateway(ctx context.Context, node string) (string, error)
}

// A ClusterHost is a [Host] whose servers are the members of a cluster, and which can cut the ways between them.
type ClusterHost interface {
	Host
	// Part has what two nodes say to one another stand still, in both directions, from when it returns until Rejoin. Nodes that are parted
	// already stay so. An error if there is no such node.
	Part(a, b string) error
	// Rejoin ends that: connections on which something stood still are reset, and the others go on. No effect on nodes that are not parted.
	Rejoin(a, b string) error
}

// A SentinelHost is a [Host] that can also start sentinels.
type SentinelHost interface {
	Host
	// StartSentinels starts n sentinels that watch the primary at addr under
	// that master name, and returns their addresses when all of them know
	// each other and every replica that the primary has at this moment.
	// They ask for the same password. They end with Close.
	StartSentinels(ctx context.Context, n int, master, addr, password string) ([]string, error)
}
