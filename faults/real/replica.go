package real

import (
	"context"
	"fmt"
	"net"

	"github.com/redis/go-redis/v9"

	"github.com/lockfault/lockfault/internal/rediscli"
)

// A Replica is a [Server] that can follow another. Its methods block until the server has answered, or
// until ctx is done.
type Replica interface {
	// Follow has it follow whoever answers at the address from now on, and connect there at once. It gives up what
	// it has and that one hasn't.
	Follow(ctx context.Context, addr string) error
	// Promote has it follow nobody any more, and returns when it takes writes.
	Promote(ctx context.Context) error
	// Progress asks it how far it is.
	Progress(ctx context.Context) (Progress, error)
}

// Progress is how far a server is with what it replicates.
type Progress struct {
	// Has is how much of what has been written it has, as a primary or a replica: numbers of servers that follow
	// one another can be compared.
	Has int64
	// Linked says that it has a link to its primary, and nothing to take over before it follows.
	Linked bool
	// Persistent says that what it does outlives its process.
	Persistent bool
}

// redisReplica is a server of Redis.
type redisReplica struct{ admin *redis.Client }

// Follow implements [Replica]. One that is told
// what it was told before does nothing, and one whose connection broke lets up to a
// second pass before it tries again; so it is told to follow somebody who isn't
// there first. It keeps what it has meanwhile, and asks only for what it missed.
func (r redisReplica) Follow(ctx context.Context, addr string) error {
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return err
	}
	if err := r.operate(ctx, "REPLICAOF", host, "1"); err != nil {
		return err
	}
	// Until it knows that nobody listens there. If it learnt that in one go with
	// the next order, it would take it for news of the next connection, which has
	// the same descriptor, and wait five seconds for what there is to read.
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

// Progress implements [Replica]. A replica begins a new file of what it does when it has taken over its
// primary's data: until that is complete, what it does is lost if it is killed.
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
		is.Has = -1 // it says nothing of it yet
	}
	fields, err = rediscli.Info(ctx, r.admin, "persistence")
	is.Persistent = fields["aof_rewrite_in_progress"] == "0" && fields["aof_rewrite_scheduled"] == "0"
	return is, err
}

// linked reports whether a replica has a link to its primary, and nothing to take over.
func linked(fields map[string]string) bool {
	return fields["master_link_status"] == "up" && fields["master_sync_in_progress"] == "0"
}
