package real

import (
	"context"
	"fmt"
	"net"

	"github.com/redis/go-redis/v9"

	"github.com/lockfault/lockfault/internal/rediscli"
)

// A Replica is a [Server] that can follow another server. Its methods block until the server has
// answered, or until ctx is done.
type Replica interface {
	// Follow makes the server follow the server at the address from now on, and connect to it at
	// once. Data that the new leader lacks is lost.
	Follow(ctx context.Context, addr string) error
	// Promote makes the server a primary, and returns when it accepts writes.
	Promote(ctx context.Context) error
	// Progress returns how far the server's replication is.
	Progress(ctx context.Context) (Progress, error)
}

// Progress is the state of a server's replication.
type Progress struct {
	// Has is the amount of written data that the server has, as a primary or a replica. The values
	// of servers that follow one another are comparable.
	Has int64
	// Linked reports that the server has a link to its primary, and has loaded the primary's data.
	Linked bool
	// Persistent reports that the server's writes survive the end of its process.
	Persistent bool
}

// redisReplica is a Redis server as a [Replica].
type redisReplica struct{ admin *redis.Client }

// Follow implements [Replica]. A server ignores a command to follow its current leader, and after a
// broken connection waits up to 1 s before it tries again. Follow therefore first makes it follow a
// port without a listener. The server keeps its data meanwhile, and requests only what it missed.
func (r redisReplica) Follow(ctx context.Context, addr string) error {
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return err
	}
	if err := r.operate(ctx, "REPLICAOF", host, "1"); err != nil {
		return err
	}
	// PING waits until the server has seen that no process listens there. If the server saw the
	// refusal in the same event loop iteration as the next command, it would take the refusal for
	// an event of the next connection, which has the same descriptor, and wait 5 s for bytes to
	// read.
	if err := r.operate(ctx, "PING"); err != nil {
		return err
	}
	return r.operate(ctx, "REPLICAOF", host, port)
}

// Promote implements [Replica].
func (r redisReplica) Promote(ctx context.Context) error {
	return r.operate(ctx, "REPLICAOF", "NO", "ONE")
}

func (r redisReplica) operate(ctx context.Context, words ...any) error {
	if err := r.admin.Do(ctx, words...).Err(); err != nil {
		return fmt.Errorf("%v: %w", words, err)
	}
	return nil
}

// Progress implements [Replica]. After a replica has loaded its primary's data, it begins a new
// append-only file: until that file is complete, a kill loses the replica's writes.
func (r redisReplica) Progress(ctx context.Context) (is Progress, err error) {
	fields, err := rediscli.Info(ctx, r.admin, "replication")
	if err != nil {
		return is, err
	}
	offset := fields["master_repl_offset"]
	if fields["role"] == "slave" {
		offset = fields["slave_repl_offset"]
		is.Linked = linked(fields)
	}
	if _, err := fmt.Sscan(offset, &is.Has); err != nil {
		is.Has = -1 // the server doesn't report an offset yet
	}
	fields, err = rediscli.Info(ctx, r.admin, "persistence")
	is.Persistent = fields["aof_rewrite_in_progress"] == "0" && fields["aof_rewrite_scheduled"] == "0"
	return is, err
}

// linked reports whether a replica has a link to its primary and has loaded the primary's data.
func linked(fields map[string]string) bool {
	return fields["master_link_status"] == "up" && fields["master_sync_in_progress"] == "0"
}
