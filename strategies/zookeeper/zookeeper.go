// Package zookeeper implements locks on ZooKeeper with the client library go-zookeeper. The input
// is a [strategies.Env] with Servers; the outputs are [strategies.Strategy]s. The locks run in real
// time only.
package zookeeper

import "github.com/lockfault/lockfault/strategies"

// Service is the name of the service.
const Service = "zookeeper"

// members is the number of servers of an ensemble: a smaller ensemble could not lose a member.
const members = 3

// All returns the locks.
func All() []strategies.Strategy { return []strategies.Strategy{recipe(), fenced()} }

// recipe returns the unmodified lock recipe of go-zookeeper.
//
// Guarantee: the holder has the node with the smallest number below the lock's node. The node is
// ephemeral: it lives as long as its session, which lasts as long as a server receives messages
// from the client within the session timeout, which is the lease. Every other client waits until
// the node before its own is deleted
// (https://zookeeper.apache.org/doc/current/recipes.html#sc_recipes_Locks). No other client gets
// the lock while the session lasts, as long as a majority of the servers is left.
//
// Known faults:
//
//   - A client that stops for longer than its session believes that it holds the lock until it
//     reaches a server again that reports the expiry. Its writes in the meantime are not refused.
//     A client that reaches no server gets no notification: only servers report that a session
//     has expired
//     (https://zookeeper.apache.org/doc/current/zookeeperProgrammers.html#ch_zkSessions).
//   - An acquire that fails because a connection broke while it looked for its turn leaves its
//     node, which blocks the queue as long as the session lives. This adapter deletes the node,
//     or ends the session.
//   - The recipe takes no context. To give up, a client has to close the connection, which ends
//     the session. A client that has begun its handshake with a server that does not reply waits
//     for nearly seven sessions before it tries another server.
//   - A lock object whose session has expired stays locked forever: it can neither be acquired
//     (ErrDeadlock) nor released (ErrNoNode). This adapter makes a new object.
//
// The scripts' expectations for locks that renew apply, with these exceptions. A client in a
// handshake with a stopped member may wait for longer than any client that wants the lock. After a
// pause, it is a matter of milliseconds whether a client writes before it learns that its session
// has ended. If no member reaches another, the lock is kept and not unavailable: isolated members
// expire no session, and the holder still has the lock when they are connected again. A connection
// on which a reply was lost is unusable. The client notices that when its pings get no reply, which
// is later than ghost-retry waits.
func recipe() strategies.Strategy {
	behind := waits()
	return strategies.Strategy{
		Name:     "zookeeper-lock",
		Service:  Service,
		Summary:  "an ephemeral node of its session, the first of all below the lock's; the session is renewed",
		Source:   "github.com/go-zookeeper/zk, NewLock",
		Nodes:    members,
		Tags:     []string{strategies.TagMulti, strategies.TagQuorum, strategies.TagRenewing},
		Query:    "/$1",
		Expected: map[string][]string{"follower-behind": behind, "gc-pause-holding": {"overlap", "stale-write"}, "all-cut-off": {}, "ghost-retry": {"unavailable"}, "acquire-reply-lost": {"unavailable", "stuck-lock"}},
		Nondeterministic: map[string]string{
			"follower-behind":    chance,
			"acquire-reply-lost": chance,
			"gc-pause-holding":   "A hears within some milliseconds of its write that its session is over",
		},
		New: func(env strategies.Env) (strategies.Lock, error) { return newLock(env, false) },
	}
}

// chance is the reason why some results are nondeterministic.
const chance = "it is drawn by lot which member a client greets first, and who greets one that says nothing, stopped or cut off, waits for nearly seven sessions"

// fenced returns the same lock with a fencing token: the zxid at which its node was created. The
// zxid is the number of that change in the order of all changes. Nodes get the lock in the order of
// their creation, so each holder's token is larger than all previous ones. A resource that checks
// the token refuses the writes of previous holders.
//
// The recipe does not expose its node. The adapter finds the node by the session that owns it.
func fenced() strategies.Strategy {
	s, behind := recipe(), waits()
	s.Name = "zookeeper-lock-zxid"
	s.Summary = "zookeeper-lock, with the zxid at which the node was made as fencing token"
	s.Source = "the same, with czxid of the node's Stat"
	s.Tags = append(s.Tags, strategies.TagFenced)
	s.Expected = map[string][]string{"follower-behind": behind, "all-cut-off": {}, "ghost-retry": {"unavailable"}, "acquire-reply-lost": {"unavailable", "stuck-lock"}}
	s.Nondeterministic = map[string]string{"follower-behind": chance, "acquire-reply-lost": chance}
	s.New = func(env strategies.Env) (strategies.Lock, error) {
		l, err := newLock(env, true)
		if err != nil {
			return nil, err
		}
		return &tokenLock{l}, nil
	}
	return s
}

// tokenLock is a lock with zxids as fencing tokens.
type tokenLock struct{ *lock }

// Token implements [strategies.Fenced].
func (l *tokenLock) Token() int64 { return l.token }

// waits returns the anomalies that a handshake with a stopped member can cause.
func waits() []string { return []string{"starvation", "unavailable"} }
