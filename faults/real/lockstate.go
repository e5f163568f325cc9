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

// A LockInspector is an [ManagedServer] of a service that can be asked whose a lock is, past the links and while others ask it, too.
type LockInspector interface {
	// Inspect asks the server's own question about the lock of that name, [faults.Lock.Query]. It blocks until that is known or ctx is
	// done. What doesn't exist yet nobody has. A member of a cluster says what it knows itself, without a majority too, and
	// is not waited for long; an error of one says that it doesn't know at the moment, as ErrNotNow does of any, unless it is ErrQuery.
	Inspect(ctx context.Context, query, name string) (LockState, error)
}

// Why a [LockInspector] says nothing.
var (
	ErrNotNow = errors.New("it can't say so at the moment")
	ErrQuery  = errors.New("the strategy's Query can't be asked")
)

// A SessionInspector is a [LockInspector] that knows of what holders have a lock with, such as their sessions, whether it has ended.
type SessionInspector interface {
	LockInspector
	// Bound reports whether a [Holder.Bond] is there still. It blocks until that is known or ctx is done.
	Bound(ctx context.Context, bond string) (bool, error)
}

// A LockState is whose a lock is as a server has it.
type LockState struct {
	// Holders are those who have it, in any order.
	Holders []Holder
	// Version, of a member of a cluster, grows with what was agreed on about the lock: of two members who has less is behind.
	Version int64
}

// A Holder is one of those who have a lock, as a server has it.
type Holder struct {
	// Owner is what stands there for him: a value that only one client has sent names that client.
	Owner string
	// Left is how long he has it unless something happens, by the server's clock; 0 means for good.
	Left time.Duration
	// Ends is why he has it no longer if he did nothing.
	Ends Ending
	// Bond is what ends then, by a name of the server's own: a lease or a session; empty if that isn't known.
	Bond string
}

// An Ending is why a lock is nobody's any more that nobody gave back. Empty says that somebody must have taken it away.
type Ending checker.Cause

// What locks may end with.
const (
	WithSession = Ending(checker.BySession) // his connection
	WithLease   = Ending(checker.ByExpiry)  // a lease that he renews
)

// looker returns who answers whose the lock is on a service's server; nil if nobody does.
func (s *server) looker() LockInspector {
	if s.world.cfg.Lock.Query == "" {
		return nil
	}
	l, _ := s.found.(LockInspector)
	return l
}

// hasInspector reports whether somebody looks at the lock on that server.
func (s *server) hasInspector() bool { return s.admin != nil || s.looker() != nil }

// glance is how long a member of a cluster is waited for: one that has to think about what it knows has lost its leader.
const glance = 100 * time.Millisecond

// errBehind says that a member of a cluster knows less than was heard of another.
var errBehind = errors.New("it is behind")

// inspectContext is for how long a server is waited for that is asked about the lock.
func (w *World) inspectContext() (context.Context, context.CancelFunc) {
	waits := patience
	if IsCluster(w.cfg.Service) {
		waits = glance
	}
	return context.WithTimeout(context.Background(), waits)
}

// mayEnd returns why a lock that was seen on a server may have ended by itself; empty if somebody must have taken it away, for what its holder had
// it with is there still. That is asked twice: a server that forgets both may do so one by one. A server that knew of the lock just now is waited
// for longer than for a glance, and the wait noted: on a busy machine silence is no word that somebody's lease or session has ended.
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

// ask reads whose the lock is on a service's server, as [World.readKeys] does.
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

// recognise tells the ledger whose a word is that begins with a client's name and much that is random, as strategies' Env.Owner does: where a connection's
// messages aren't told apart, nobody has seen who sent it.
func (w *World) recognise(word string) {
	for name := range w.clients {
		if rest, ok := strings.CutPrefix(word, name+"-"); ok && len(rest) >= 16 && w.ledger.Unknown(word) {
			w.ledger.Sent(name, []string{word})
		}
	}
}

// agreed is what was last heard of a cluster: how the lock stands, and which version that is of. blind says that somebody was answered since when
// the member that was asked knew nothing.
type agreed struct {
	keys    []faults.Key
	ends    Ending
	bond    string
	version int64
	blind   bool
}

// together returns all members of a cluster that answer, that one first, for the lock is as the cluster has it, and tells of those that didn't answer when
// it came to be as it is.
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

// held returns holders as the lock's key: of several, until the first has it no longer.
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

// notice records how the lock stands on a service's server, where many requests may be under way: the last that was answered, nil
// if none was, or any that was not. It returns what the answered one did.
//
// Whose doing a change was is read off it. Who has the lock now has taken it. Who has it no more has given it back, if anything of his
// is under way; else it has ended by itself, if it can and what he had it with has; else somebody has taken it away, who is known
// if nobody else has anything under way.
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
	if blind && keys[0].Exists() && !faults.SameKeys(s.keys, keys) { // who did that may have heard of it before anybody looked
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
	// doer is when the request set out by which a client did something; 0 if it is one of several.
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
		case blind: // he was answered meanwhile, or may have been
			change(free, slack, checker.ByCommand, was)
		}
	}
	if now == "" {
		now = sole
	}
	change(keys, took, checker.ByCommand, now)
	return did
}

// credit notes what a client's request did that was not answered yet, or whose answer was not seen yet; false if that was the one that was answered just now, or
// nobody knows of any.
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

// writes returns the oldest request that the server has and that may change the lock, one that its client hasn't given up if there is any; nil if none may.
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

// elsewhere reports whether what may change only these keys doesn't change whose the lock is; not if it isn't known which.
func (w *World) elsewhere(within []proxy.KeyRange) bool {
	lock := w.cfg.Lock
	return within != nil && lock.Query != "" && !proxy.Below(strings.ReplaceAll(lock.Query, "$1", lock.Keys[0])).Meeting(within)
}

// busy returns the clients that have a request under way with a server which may change the lock, as far as messages are told apart, and the one that had.
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

// underWay are the connections, in any order, on which something is asked that may change the lock on a server: with a cluster any member may have been asked.
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

// introduce tells the ledger what clients said of themselves when their connections began: whoever has one still may have the lock by it.
func (w *World) introduce() {
	for _, on := range slices.SortedFunc(maps.Keys(w.links), func(a, b link) int {
		return cmp.Or(strings.Compare(a.client, b.client), strings.Compare(a.node, b.node), strings.Compare(a.server, b.server))
	}) {
		for _, c := range w.links[on].list() {
			w.ledger.Sent(on.client, c.names)
		}
	}
}

// looksInLease is how often in a lease servers of a service are asked whose the lock is though nobody was answered: sessions end.
const looksInLease = 50

// keepLooking has the servers asked again and again that are nobody's followers.
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
