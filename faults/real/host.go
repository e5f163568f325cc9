package real

import (
	"context"
	"errors"
	"time"
)

// ErrNoClock reports that a host can't move its servers' clocks here: there is no compiler for the
// shim, or the server can't load the shim. The reason follows in the error text.
var ErrNoClock = errors.New("servers' clocks can't be moved")

// A Host starts the servers of a world, or finds them. Its methods, and those of its servers, must
// be safe for concurrent use.
type Host interface {
	// Start starts a server, and returns when it answers PING; a replica may not have its primary's
	// data by then. The result is a [ManagedServer] or an [UnmanagedServer]. Start blocks until the
	// answer, until ctx is done, or until the server has ended. The error gives the reason in one
	// line, and wraps [ErrNoClock] if spec.Clock is impossible.
	Start(ctx context.Context, spec ServerSpec) (Server, error)
	// Close ends every server that the host started, including paused ones, waits for their ends
	// and removes their files and logs. A host that lends takes the servers back instead. A Start
	// in progress fails. Close is idempotent.
	Close() error
}

// A LendingHost is a [Host] whose servers outlast a world, and already have a password.
type LendingHost interface {
	Host
	Password() string
}

// A ServerSpec specifies the server to start. Name and Password must be set.
type ServerSpec struct {
	// Name is n1, n1-r1 and so on, unique in the world. The server's directory and log have this
	// name.
	Name string
	// Node is the server's node, for hosts that keep nodes apart; empty means a node of its own.
	Node string
	// Password is the password that clients and replicas must show, and that the server shows as a
	// replica.
	Password string
	// Replica reports that the server will be told to follow another one as soon as it runs. Hosts
	// whose servers begin as primaries may ignore it.
	Replica bool
	// Clock reports that the server's clock will be moved.
	Clock bool
}

// A Server is one server of a world.
type Server interface {
	// Addr returns the server's host:port.
	Addr() string
}

// A ManagedServer is a server whose process the world controls, running or not.
type ManagedServer interface {
	// Server gives the address. Restart may change it.
	Server
	// Pause stops the process until Resume, and returns when it has stopped. Bytes sent to the
	// server wait meanwhile. Pause has no effect on a paused process, and fails if the process has
	// ended.
	Pause() error
	// Resume continues a paused process. Resume has no effect on a process that is not paused, and
	// fails if the process has ended.
	Resume() error
	// Kill ends the process at once, paused or not, and returns when it has ended. Kill has no
	// effect on a process that has ended.
	Kill() error
	// Restart starts a server that has ended, with the data that it had written or empty, as a
	// primary: the world decides whom it follows. Restart returns under the same conditions as
	// Start. The clock stays as it was set. Restart fails if the process has not ended.
	Restart(ctx context.Context, empty bool) error
	// SetClock sets the server's wall clock to true time plus offset at this moment. From now on it
	// runs rate times as fast as true time. Monotonic clocks run at that rate too, and never jump.
	// Offset 0 and rate 1 mean true time. SetClock fails if the server was started without a Clock.
	SetClock(offset time.Duration, rate float64) error
}

// A GatewayHost is a [Host] whose servers can't reach the loopback interface of this machine, where
// links listen by default.
type GatewayHost interface {
	Host
	// Gateway returns the IP address of this machine at which the servers of a node reach listeners
	// of this machine. It may be called before or after the servers start.
	Gateway(ctx context.Context, node string) (string, error)
}

// A ClusterHost is a [Host] whose servers are the members of a cluster, and which can cut the
// connections between them.
type ClusterHost interface {
	Host
	// Part holds all bytes between two nodes, in both directions, from its return until Rejoin.
	// Nodes that are parted already stay parted. Part fails for an unknown node.
	Part(a, b string) error
	// Rejoin ends a Part: connections on which bytes were held are reset, and the others go on.
	// Rejoin has no effect on nodes that are not parted.
	Rejoin(a, b string) error
}

// A SentinelHost is a [Host] that can also start sentinels.
type SentinelHost interface {
	Host
	// StartSentinels starts n sentinels that monitor the primary at addr under a master name. It
	// returns their addresses when all of them have found each other and every current replica of
	// the primary. The sentinels ask for the same password, and end with Close.
	StartSentinels(ctx context.Context, n int, master, addr, password string) ([]string, error)
}
