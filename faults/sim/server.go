package sim

import (
	"bufio"
	"fmt"
	"io"
	"math"
	"strings"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/alicebob/miniredis/v2/server"

	"github.com/lockfault/lockfault/checker"
	"github.com/lockfault/lockfault/faults"
)

// node is an independent Redis: a primary and its replicas.
type node struct {
	name    string
	servers []*redis
	primary *redis
	// rival is a second server that thinks it is the primary; split names
	// the clients that are led to it.
	rival *redis
	split map[string]bool
}

// redis is one server process.
type redis struct {
	name string
	node *node
	mini *miniredis.Miniredis
	// commands is mini's door.
	commands *server.Server
	up       bool
	paused   bool
	door     []*message // requests that wait while it is paused
	conns    []*conn
	// serving is where the request came from that is being executed; the
	// commands of scripts come from elsewhere. nil if it is an operator's.
	serving *server.Peer

	// Its clock shows the true time plus skew, and the skew grows by rate-1
	// for each unit of time since.
	skew  time.Duration
	rate  float64
	since time.Time

	moved  bool  // the clock was moved since the lock's key got its expiry date
	expiry *item // when the lock's key will be gone
	feed
}

func (w *World) newNode(name string) (*node, error) {
	n := &node{name: name, split: map[string]bool{}}
	for i := range 1 + w.cfg.Replicas {
		s := &redis{name: fmt.Sprintf("%s/%d", name, i), node: n, mini: miniredis.NewMiniRedis(), up: true, rate: 1, since: time.Now(), feed: feed{known: map[string]record{}}}
		// Dial is what makes a server that listens nowhere; the gate hands
		// it its requests directly, so the connection is not needed.
		conn, err := s.mini.Dial()
		if err != nil {
			return nil, fmt.Errorf("sim: starting %s: %w", s.name, err)
		}
		conn.Close()
		s.mini.SetTime(s.now())
		s.mini.ClockTTL(true)
		s.commands = s.mini.Server() // which locks miniredis, as it is already while a script runs
		s.commands.SetPreHook(s.before)
		n.servers = append(n.servers, s)
	}
	n.primary = n.servers[0]
	return n, nil
}

func newPeer(out io.Writer) *server.Peer { return server.NewPeer(bufio.NewWriter(out)) }

// serverFor returns the server that a client of that name is led to.
func (n *node) serverFor(client string) *redis {
	if n.split[client] {
		return n.rival
	}
	return n.primary
}

// leads reports whether the server takes itself for the node's primary.
func (s *redis) leads() bool {
	return s.up && (s == s.node.primary || s == s.node.rival)
}

// follows reports whether the server is a replica.
func (s *redis) follows() bool { return s.up && !s.leads() }

// now reads the server's clock.
func (s *redis) now() time.Time {
	now := time.Now()
	return now.Add(s.skew + time.Duration(float64(now.Sub(s.since))*(s.rate-1)))
}

// tick sets miniredis to the server's clock; keys whose date has come are gone.
func (s *redis) tick() { s.mini.SetTime(s.now()) }

// move moves the clock. Redis keeps expiry as dates, so time to live shrinks or
// grows with it; miniredis keeps what is left, and has to be told when that
// grows.
func (s *redis) move(by time.Duration) {
	s.tick()
	s.mini.DB(0) // miniredis counts the time up to now when it is asked for something
	s.skew += by
	s.tick()
	if by < 0 {
		s.mini.FastForward(by)
	}
}

// drift lets the clock run at another rate from now on.
func (s *redis) drift(rate float64) {
	s.skew = time.Until(s.now())
	s.since = time.Now()
	s.rate = rate
}

// dispatch executes a request; what the server answers is in the connection's
// outbox.
func (s *redis) dispatch(m *message) {
	s.tick()
	if flushes(m.words) && !m.conn.multi && s.leads() {
		s.flush()
	}
	s.serving = m.conn.peer
	s.commands.Dispatch(m.conn.peer, m.words)
	s.serving = nil
	m.conn.peer.Flush()
}

// operate executes a command of an operator, not of a client.
func (s *redis) operate(words ...string) {
	s.tick()
	peer := newPeer(io.Discard)
	s.commands.Dispatch(peer, words)
}

// forget lets go of what a closed connection left behind.
func (s *redis) forget(c *conn) {
	if c.subscribed {
		for _, command := range [...]string{"UNSUBSCRIBE", "PUNSUBSCRIBE"} {
			s.commands.Dispatch(c.peer, []string{command})
		}
	}
	c.peer.Close()
}

// look reads a key as it stands, with its expiry on the true clock.
func (s *redis) look(key string, began time.Time) faults.Key {
	s.tick()
	db := s.mini.DB(0)
	if !s.mini.Exists(key) {
		return faults.Key{}
	}
	var found faults.Key
	switch db.Type(key) {
	case "string":
		found.Value, _ = db.Get(key)
	case "hash":
		fields, _ := db.HKeys(key)
		for i, field := range fields { // more than one would be a bug of the strategy: show them all
			if i == 0 {
				found = faults.Key{Value: field, Count: db.HGet(key, field)}
			} else {
				found.Count += "," + field + "×" + db.HGet(key, field)
			}
		}
	default:
		found.Value = "(" + db.Type(key) + ")"
	}
	if ttl := db.TTL(key); ttl > 0 {
		// Rounded up: before that moment it would still be there.
		left := min(math.Ceil(float64(ttl)/s.rate), float64(century))
		found.Expires = time.Now().Add(time.Duration(left)).Sub(began)
	}
	return found
}

// century is as good as for ever, and can be added to a time: a key that stays
// longer is looked at again then.
const century = 100 * 365 * 24 * time.Hour

// observe records how the lock's key changed on a server, passes writes on to
// its replicas, and plans the moment at which the key will expire.
func (w *World) observe(s *redis, cause checker.Cause, client string, words []string) {
	if cause == checker.ByCommand && s.mini.IsReadOnlyCommand(strings.ToUpper(words[0])) {
		return
	}
	key := s.look(w.cfg.Key, w.began)
	w.saw(s, key, cause, client, words)
	if s.leads() {
		w.replicate(s)
	}
}

func (w *World) saw(s *redis, key faults.Key, cause checker.Cause, client string, words []string) {
	event, changed := w.ledger.Saw(s.node.name, s.name, key, cause, client, words, slack)
	if !changed {
		return
	}
	w.tell(event)
	if s.expiry != nil {
		s.expiry.dead = true
		s.expiry = nil
	}
	s.moved = cause == checker.ByClock
	w.planExpiry(s, key)
}

func (w *World) planExpiry(s *redis, key faults.Key) {
	if key.Expires != 0 {
		s.expiry = w.plan(w.began.Add(key.Expires), rank{who: servers + s.name, what: "expiry"}, func() { w.expire(s) })
	}
}

// slack is the granularity of expiry dates; Redis counts in milliseconds.
const slack = time.Millisecond

// expire records that the lock's key is gone, and tells the replicas. If it
// isn't gone yet, because its expiry date moved by less than slack or a drifting
// clock was rounded, it looks again then.
func (w *World) expire(s *redis) {
	cause := checker.ByExpiry
	if s.moved || s.rate != 1 {
		cause = checker.ByClock
	}
	s.expiry = nil
	key := s.look(w.cfg.Key, w.began)
	if key.Expires != 0 {
		w.planExpiry(s, key)
		return
	}
	w.saw(s, key, cause, "", nil)
	if s.leads() {
		w.replicate(s)
	}
}

// settle records that the lock's key is gone before something else happens on
// the server that would be taken for the reason.
func (w *World) settle(s *redis) {
	if s.expiry == nil || time.Until(s.expiry.due) > slack {
		return
	}
	if key := s.look(w.cfg.Key, w.began); key.Expires == 0 {
		s.expiry.dead = true
		w.expire(s)
	}
}
