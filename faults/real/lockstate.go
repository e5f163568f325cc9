package real

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/lockfault/lockfault/checker"
	"github.com/lockfault/lockfault/faults"
	"github.com/lockfault/lockfault/faults/real/proxy"
)

// A LockInspector is a [ManagedServer] of a service that reports a lock's holders. It is asked
// directly, not through the links.
type LockInspector interface {
	// Inspect asks the server about the lock of that name, with the strategy's [faults.Lock.Query].
	// It blocks until the answer or until ctx is done, and is safe for concurrent use. A lock that
	// doesn't exist has no holders. A member of a cluster answers from its own state, even without
	// a majority, and gets only a short time. Any error of a member means that it can't answer at
	// the moment, except ErrQuery; for other servers only ErrNotNow means that.
	Inspect(ctx context.Context, query, name string) (LockState, error)
}

// Errors of a [LockInspector].
var (
	ErrNotNow = errors.New("it can't say so at the moment")
	ErrQuery  = errors.New("the strategy's Query can't be asked")
)

// A SessionInspector is a [LockInspector] that can check whether a holder's session or lease still
// exists.
type SessionInspector interface {
	LockInspector
	// Bound reports whether a [Holder.Bond] still exists. It blocks until the answer or until ctx
	// is done.
	Bound(ctx context.Context, bond string) (bool, error)
}

// A LockState is the state of a lock on a server.
type LockState struct {
	// Holders are the holders of the lock, in any order.
	Holders []Holder
	// Version grows with each agreed change of the lock in a cluster: of two members, the one with
	// the smaller Version lags.
	Version int64
}

// A Holder is one holder of a lock, as a server reports it.
type Holder struct {
	// Owner is the holder's value on the server. A value that only one client has sent identifies
	// that client.
	Owner string
	// Left is the remaining time of the hold by the server's clock; 0 means that it has no end.
	Left time.Duration
	// Ends is how the hold ends without an action of the holder.
	Ends Ending
	// Bond is the server's name of the lease or session that ends the hold; empty if it is unknown.
	Bond string
}

// An Ending is how a hold ends without a release. Empty means that only another client can end it.
type Ending checker.Cause

// The ways in which a hold ends by itself.
const (
	WithSession = Ending(checker.BySession) // the holder's connection
	WithLease   = Ending(checker.ByExpiry)  // a lease that the holder renews
)

// looker returns the inspector of a service's server, or nil if there is none.
func (s *server) looker() LockInspector {
	if s.world.cfg.Lock.Query == "" {
		return nil
	}
	l, _ := s.found.(LockInspector)
	return l
}

// hasInspector reports whether the world can read the state of the lock on a server.
func (s *server) hasInspector() bool { return s.admin != nil || s.looker() != nil }

// glance is the time that a member of a cluster has to answer: a slower member has lost its leader.
const glance = 100 * time.Millisecond

// errBehind reports that a member's state is older than a state that another member has reported.
var errBehind = errors.New("it is behind")

// inspectContext returns a context with the time that a server has to answer about the lock.
func (w *World) inspectContext() (context.Context, context.CancelFunc) {
	waits := patience
	if IsCluster(w.cfg.Service) {
		waits = glance
	}
	return context.WithTimeout(context.Background(), waits)
}

// mayEnd returns how a hold on a server may have ended by itself. It returns an empty Ending if
// another client must have ended the hold, because the holder's lease or session still exists.
// mayEnd asks twice, because a server may remove the lock and the session one after the other. The
// server answered about the lock just now, so mayEnd waits longer than glance and records the
// delay: on a busy machine a missing answer does not prove that a lease or session has ended.
func (w *World) mayEnd(s *server, ends Ending, bond string) Ending {
	binder, ok := s.looker().(SessionInspector)
	if !ok || bond == "" || ends == "" {
		return ends
	}
	for _, pause := range []time.Duration{0, 2 * time.Millisecond} {
		time.Sleep(pause)
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		asked := time.Now()
		bound, err := binder.Bound(ctx, bond)
		cancel()
		w.note(s.Name, s.Name+" to say whether a lease or session is there still", time.Since(asked)-s.trip())
		if err != nil || !bound {
			return ends
		}
	}
	return ""
}

// ask reads the lock's holders on a service's server, with the contract of [World.readKeys].
func (s *server) ask(l LockInspector) (keys []faults.Key, took time.Duration, err error) {
	w := s.world
	ctx, cancel := w.inspectContext()
	defer cancel()
	asked := time.Now()
	seen, err := l.Inspect(ctx, w.cfg.Lock.Query, w.cfg.Lock.Keys[0])
	took = time.Since(asked)
	if !errors.Is(err, ErrNotNow) {
		w.note(s.Name, s.Name+" to answer the strategy's Query", took-s.trip())
	}
	if err == nil && seen.Version < w.cluster.version {
		err = errBehind
	}
	if err != nil {
		return nil, 0, fmt.Errorf("real: %s: asking whose the lock is: %w", s.Name, err)
	}
	w.cluster.version = seen.Version
	for _, h := range seen.Holders {
		w.recognise(h.Owner)
		s.ends, s.bond = h.Ends, h.Bond
	}
	return []faults.Key{held(seen.Holders, s.Clock.Rate(), asked.Sub(w.began))}, took + slack, nil
}

// recognise attributes a word to a client if it begins with the client's name and a long random
// part, as the strategies' Env.Owner values do. On a connection whose bytes are not parsed, no
// message shows the sender.
func (w *World) recognise(word string) {
	for name := range w.clients {
		if rest, ok := strings.CutPrefix(word, name+"-"); ok && len(rest) >= 16 && w.ledger.Unknown(word) {
			w.ledger.Sent(name, []string{word})
		}
	}
}

// agreed is the last known state of a cluster's lock and the version of that state. blind reports
// that a client was answered later, when the member that was asked couldn't tell the state.
type agreed struct {
	keys    []faults.Key
	ends    Ending
	bond    string
	version int64
	blind   bool
}

// together returns all members of a cluster that answer, first at the beginning: the lock's state
// is the cluster's. It also records the current state for members that did not answer when that
// state began.
func (w *World) together(first *server) (list []*server) {
	for _, member := range w.servers {
		switch {
		case !member.Answers():
			continue
		case member == first:
			list = slices.Insert(list, 0, member)
		default:
			list = append(list, member)
		}
		if had := w.cluster.keys; had != nil && !faults.SameKeys(member.keys, had) {
			w.changed(member, had, slack, checker.ByReplication, "", nil, 0)
		}
	}
	return list
}

// held returns holders as the lock's key. With several holders, the key expires with the first
// hold.
func held(holders []Holder, rate float64, asked time.Duration) (key faults.Key) {
	var left time.Duration
	for _, h := range holders {
		key.Words = append(key.Words, h.Owner)
		if h.Left != 0 && (left == 0 || h.Left < left) {
			left = h.Left
		}
	}
	slices.Sort(key.Words)
	switch len(key.Words) {
	case 0:
		return faults.Key{}
	case 1:
		key.Type = "string"
	default:
		key.Type = "set"
	}
	if left != 0 {
		key.Expires = asked + time.Duration(float64(left)/rate)
	}
	return key
}

// notice records the state of the lock on a service's server, where many requests may be in
// progress. answered is the request that was answered last, nil if none was. notice returns the
// effect of that request.
//
// The cause of a change is derived from the change. The new holder has acquired the lock. The
// previous holder has released it if a request of that client is in progress. Otherwise the hold
// has ended by itself, if it can and the holder's lease or session is gone. Otherwise another
// client has ended it; that client is known if no other client has a request in progress.
func (w *World) notice(s *server, answered *message) (did faults.Effect) {
	if w.record == nil || s.looker() == nil || !s.Answers() {
		return ""
	}
	ends, bond := s.ends, s.bond
	keys, took, err := w.readKeys(s)
	if err != nil {
		if (!IsCluster(w.cfg.Service) || errors.Is(err, ErrQuery)) && !errors.Is(err, ErrNotNow) {
			w.must(err)
		}
		w.cluster.blind = w.cluster.blind || IsCluster(w.cfg.Service) && answered != nil && !answered.opens && !errors.Is(err, errBehind)
		return ""
	}
	w.overdue(s, keys)
	group, blind := []*server{s}, w.cluster.blind
	if IsCluster(w.cfg.Service) {
		group, ends, bond = w.together(s), w.cluster.ends, w.cluster.bond
		w.cluster = agreed{keys: keys, ends: s.ends, bond: s.bond, version: w.cluster.version}
	}
	if blind && keys[0].Exists() && !faults.SameKeys(s.keys, keys) { // the holder may have received the answer before the world looked
		for _, member := range group {
			w.stands(member, w.ledger.Somebody(member.Node.Name, member.Name, keys), keys, took)
		}
		return ""
	}
	if answered != nil && answered.idle {
		answered = nil
	}
	by := ""
	if answered != nil {
		by = answered.conn.wire.client
	}
	busy := w.busy(s, by)
	sole := ""
	if len(busy) == 1 {
		sole = busy[0]
	}
	// doer returns when the client sent the request that made the change; 0 if several requests
	// qualify.
	doer := func(client string) (sent time.Duration) {
		if answered != nil && client == by {
			return w.at(answered.request.SetOut)
		}
		for c := range w.underWay(s) {
			switch m := c.writes(); {
			case c.wire.client != client:
			case sent != 0:
				return 0
			default:
				sent = w.at(m.SetOut)
			}
		}
		return sent
	}
	change := func(keys []faults.Key, took time.Duration, cause checker.Cause, client string) {
		for _, member := range group {
			d := w.changed(member, keys, took, cause, client, nil, doer(client))
			if !w.credit(s, client, d, answered) && answered != nil && client == by {
				did = cmp.Or(did, d)
			}
		}
	}
	was, _ := w.ledger.Owner(s.Name)
	now, known := w.ledger.OwnerByKeys(s.Name, keys)
	free := []faults.Key{{}}
	switch {
	case was == now || was == "" || !known:
	case slices.Contains(busy, was):
		change(free, slack, checker.ByCommand, was)
	default:
		ends := w.mayEnd(s, ends, bond)
		switch {
		case ends != "":
			change(free, slack, checker.Cause(ends), "")
		case blind: // the previous holder was answered meanwhile, or may have been
			change(free, slack, checker.ByCommand, was)
		}
	}
	if now == "" {
		now = sole
	}
	change(keys, took, checker.ByCommand, now)
	return did
}

// credit records the effect of a client's request that is not answered yet, or whose answer was not
// seen yet. It returns false for the client of the request that was answered just now, and if no
// request is known.
func (w *World) credit(s *server, client string, did faults.Effect, answered *message) (noted bool) {
	if did == "" || client == "" || answered != nil && answered.conn.wire.client == client {
		return false
	}
	for c := range w.underWay(s) {
		if c.wire.client == client {
			c.writes().did, noted = did, true
		}
	}
	return noted
}

// writes returns the oldest request on the connection that the server has and that may change the
// lock. It prefers requests that the client hasn't given up, and returns nil if there is none.
func (c *conn) writes() (m *message) {
	for _, one := range c.asked {
		given := slices.Contains(c.given, one.Number)
		switch {
		case !one.idle && !given:
			return one
		case !one.idle && m == nil:
			m = one
		}
	}
	return m
}

// elsewhere reports whether a request that may change only these key ranges can't change the lock's
// holder. It returns false if the ranges are unknown.
func (w *World) elsewhere(within []proxy.KeyRange) bool {
	lock := w.cfg.Lock
	return within != nil && lock.Query != "" && !proxy.Below(strings.ReplaceAll(lock.Query, "$1", lock.Keys[0])).Meeting(within)
}

// busy returns the clients with a request in progress that may change the lock on a server, and the
// given client. Connections whose bytes are not parsed are missing.
func (w *World) busy(s *server, had string) (names []string) {
	if had != "" {
		names = append(names, had)
	}
	for c := range w.underWay(s) {
		names = append(names, c.wire.client)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// underWay iterates, in any order, over the connections with a request in progress that may change
// the lock on a server. In a cluster, requests to every member count.
func (w *World) underWay(s *server) iter.Seq[*conn] {
	return func(yield func(*conn) bool) {
		for _, wire := range w.links {
			for _, c := range wire.conns {
				if c.writes() != nil && (c.server == s || IsCluster(w.cfg.Service)) && !yield(c) {
					return
				}
			}
		}
	}
}

// introduce attributes to each client the values that it sent at the beginning of its connections.
// A client with an open connection may hold the lock by such a value.
func (w *World) introduce() {
	for _, on := range slices.SortedFunc(maps.Keys(w.links), func(a, b link) int {
		return cmp.Or(strings.Compare(a.client, b.client), strings.Compare(a.node, b.node), strings.Compare(a.server, b.server))
	}) {
		for _, c := range w.links[on].list() {
			w.ledger.Sent(on.client, c.names)
		}
	}
}

// looksInLease is how often per lease the servers of a service are asked for the lock's holder
// without a request, because sessions end by themselves.
const looksInLease = 50

// keepLooking inspects each server that is not a replica, and plans its own next call.
func (w *World) keepLooking() {
	if w.record == nil || !slices.ContainsFunc(w.servers, func(s *server) bool { return s.looker() != nil }) {
		return
	}
	for _, s := range w.servers {
		if s.Leader == nil {
			w.notice(s, nil)
		}
	}
	w.plan(time.Now().Add(max(w.cfg.TTL/looksInLease, 5*time.Millisecond)), w.keepLooking)
}
