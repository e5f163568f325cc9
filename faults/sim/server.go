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
	"github.com/lockfault/lockfault/faults/topology"
)

// redis is one server process.
type redis struct {
	*topology.Server
	world *World
	mini  *miniredis.Miniredis
	// commands is mini's door.
	commands *server.Server
	door     []*message // requests that wait while it is paused
	conns    []*conn
	scripts  *scripts

	moved   bool  // the clock was moved since the lock's key got its expiry date
	expiry  *item // when the lock's key will be gone
	overdue bool  // that time came while it was stopped or down

	offset int               // how many effects it has had
	known  map[string]record // what its followers were told, or are when they connect
	in     feed              // how it is told itself, by its leader

	waiters []*waiter
}

// newRedis starts a server.
func (w *World) newRedis(of *topology.Server) (*redis, error) {
	s := &redis{Server: of, world: w, mini: miniredis.NewMiniRedis(), scripts: newScripts(&w.machine)}
	if of.Leader == nil {
		s.known = map[string]record{}
	} else {
		s.in = feed{of: of.Leader, connected: true}
	}
	// Dial is what makes a server that listens nowhere; the gate hands
	// it its requests directly, so the connection is not needed.
	conn, err := s.mini.Dial()
	if err != nil {
		return nil, fmt.Errorf("sim: starting %s: %w", s.Name, err)
	}
	conn.Close()
	s.mini.SetTime(s.now())
	s.mini.ClockTTL(true)
	s.commands = s.mini.Server()
	s.commands.SetPreHook(s.before)
	return s, nil
}

func newPeer(out io.Writer) *server.Peer { return server.NewPeer(bufio.NewWriter(out)) }

// now reads the server's clock.
func (s *redis) now() time.Time {
	now := time.Now()
	return now.Add(s.Clock.Offset(now))
}

// tick sets miniredis to the server's clock; keys whose date has come are gone.
func (s *redis) tick() { s.mini.SetTime(s.now()) }

// move has the clock go on from another one. Redis keeps expiry as dates, so
// time to live shrinks or grows with a jump; miniredis keeps what is left, and
// has to be told when that grows.
func (s *redis) move(was topology.Clock) {
	now := time.Now()
	s.mini.SetTime(now.Add(was.Offset(now)))
	s.mini.DB(0) // miniredis counts the time up to now when it is asked for something
	by := s.Clock.Offset(now) - was.Offset(now)
	s.tick()
	if by < 0 {
		s.mini.FastForward(by)
	}
}

// dispatch executes a request; what the server answers is in the connection's
// outbox.
func (s *redis) dispatch(m *message) {
	s.tick()
	if !s.transact(m.conn, m.command, m.words) {
		s.execute(m.conn.peer, m.command, m.words)
	}
	m.conn.peer.Flush()
}

// execute executes a command, whose name is there in upper case too, wherever it
// comes from. It never waits: what would is answered nil.
func (s *redis) execute(from *server.Peer, command string, words []string) {
	switch command {
	case "EVAL", "EVALSHA", "EVAL_RO", "EVALSHA_RO":
		from.WriteRaw(string(s.eval(from, command, words)))
		return
	case "SCRIPT":
		from.WriteRaw(string(s.script(words)))
		return
	case "FLUSHALL", "FLUSHDB":
		if flushes(words) && s.Leads() {
			s.flush()
		}
	}
	if _, blocks := blocksFor(command, words); blocks {
		answer, _ := s.once(words, from.Resp3)
		from.WriteRaw(string(answer))
		return
	}
	s.commands.Dispatch(from, words)
}

// operate executes a command of an operator, not of a client.
func (s *redis) operate(words ...string) {
	s.tick()
	s.execute(newPeer(io.Discard), words[0], words)
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
		left := min(math.Ceil(float64(ttl)/s.Clock.Rate()), float64(topology.Century))
		found.Expires = time.Now().Add(time.Duration(left)).Sub(began)
	}
	return found
}

// observe records how the lock's key changed on a server, passes writes on to
// its replicas, and plans the moment at which the key will expire.
func (w *World) observe(s *redis, cause checker.Cause, client string, words []string) {
	if cause == checker.ByCommand && s.mini.IsReadOnlyCommand(strings.ToUpper(words[0])) {
		return
	}
	key := s.look(w.cfg.Key, w.began)
	w.saw(s, key, cause, client, words)
	if s.Leads() {
		w.replicate(s)
	}
}

func (w *World) saw(s *redis, key faults.Key, cause checker.Cause, client string, words []string) {
	event, changed := w.ledger.Saw(s.Node.Name, s.Name, key, cause, client, words, slack)
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
		s.expiry = w.plan(w.began.Add(key.Expires), rank{who: servers + s.Name, what: "expiry"}, func() { w.expire(s) })
	}
}

// slack is the granularity of expiry dates; Redis counts in milliseconds.
const slack = time.Millisecond

// expire records that the lock's key is gone, and tells the replicas. If it
// isn't gone yet, because its expiry date moved by less than slack or a drifting
// clock was rounded, it looks again then.
func (w *World) expire(s *redis) {
	cause := checker.ByExpiry
	if s.moved || s.Clock.Rate() != 1 {
		cause = checker.ByClock
	}
	s.expiry = nil
	if s.overdue = !s.Answers(); s.overdue {
		return
	}
	key := s.look(w.cfg.Key, w.began)
	if key.Expires != 0 {
		w.planExpiry(s, key)
		return
	}
	w.saw(s, key, cause, "", nil)
	if s.Leads() {
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
