// Package zookeeper has locks on ZooKeeper, of the client library go-zookeeper. What comes in is a
// [strategies.Env] with Servers; what goes out are [strategies.Strategy]s.
package zookeeper

import "github.com/lockfault/lockfault/strategies"

// Service is the name of the service.
const Service = "zookeeper"

// members is how many servers an ensemble has: with fewer none may be missing.
const members = 3

// All returns the locks.
func All() []strategies.Strategy { return []strategies.Strategy{recipe(), fenced()} }

// recipe is the lock recipe of go-zookeeper, as it is.
//
// What it promises: who holds has the node with the smallest number below the lock's, which is ephemeral: it lives
// as long as its session, and that lasts as long as a server hears of the client within the session's time, which
// is the lease. Whoever else wants the lock waits for the node before his own to go
// (https://zookeeper.apache.org/doc/current/recipes.html#sc_recipes_Locks). Nobody else gets the
// lock as long as the session lasts, however servers fail, if a majority is left.
//
// Its known faults:
//
//   - A client that stops for longer than its session goes on believing that it holds, until it has
//     reached a server again that tells it. What it writes meanwhile nobody refuses. A client that reaches no
//     server is told nothing at all: only servers say that a session has expired
//     (https://zookeeper.apache.org/doc/current/zookeeperProgrammers.html#ch_zkSessions).
//   - An acquire that ends in an error, because a connection broke while it looked whose turn it is, leaves its node
//     behind, which nobody gets past as long as the session lives. This adapter deletes the node, or ends the session.
//   - It takes no context. Who gives up has to close the connection, which ends the session; and a client that has
//     begun to greet a server which doesn't answer waits for nearly seven sessions before it tries another one.
//   - A lock object whose session has expired says that it holds, for ever: it can neither be acquired (ErrDeadlock)
//     nor released (ErrNoNode). This adapter makes a new one.
//
// Scripts find what they expect of any lock that renews, but where a client greets a member that is stopped: it may
// wait for longer than anybody who wants the lock. And of a client that goes on after a pause nobody knows whether it writes before it
// hears that its session is over: some milliseconds are between. And where no member reaches another the lock is kept, not
// unavailable: members that are alone expire no session, and the one who holds has it still when they are together again.
// A connection on which an answer was lost is of no use any more, which the client finds out when it hears nothing of its pings: later
// than ghost-retry waits.
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
		Expected: map[string][]string{"follower-behind": behind, "gc-pause-holding": {"overlap", "stale-write"}, "all-cut-off": {}, "ghost-retry": {"unavailable"}},
		Nondeterministic: map[string]string{
			"follower-behind":  chance,
			"gc-pause-holding": "A hears within some milliseconds of its write that its session is over",
		},
		New: func(env strategies.Env) (strategies.Lock, error) { return newLock(env, false) },
	}
}

// chance is why some of what it shows is chance.
const chance = "it is drawn by lot which member a client greets first, and who greets one that says nothing, stopped or cut off, waits for nearly seven sessions"

// fenced is the same lock, and its token is the zxid at which its node was made, the number of that change in
// the order of all. Nodes get the lock in the order in which they were made, so each holder's is larger than those
// before. Who guards a resource by that refuses what is written by whoever held before.
//
// The recipe doesn't say which node is its own. It is the one of its session, whose owner the node names.
func fenced() strategies.Strategy {
	s, behind := recipe(), waits()
	s.Name = "zookeeper-lock-zxid"
	s.Summary = "zookeeper-lock, with the zxid at which the node was made as fencing token"
	s.Source = "the same, with czxid of the node's Stat"
	s.Tags = append(s.Tags, strategies.TagFenced)
	s.Expected = map[string][]string{"follower-behind": behind, "all-cut-off": {}, "ghost-retry": {"unavailable"}}
	s.Nondeterministic = map[string]string{"follower-behind": chance}
	s.New = func(env strategies.Env) (strategies.Lock, error) {
		l, err := newLock(env, true)
		if err != nil {
			return nil, err
		}
		return &tokenLock{l}, nil
	}
	return s
}

// tokenLock is a lock that hands out zxids.
type tokenLock struct{ *lock }

// Token implements [strategies.Fenced].
func (l *tokenLock) Token() int64 { return l.token }

// waits is what comes of greeting a stopped member.
func waits() []string { return []string{"starvation", "unavailable"} }
