package sim

import (
	"bufio"
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
	// commands executes requests on mini.
	commands *server.Server
	door     []*message // requests that wait while the server is paused
	conns    []*conn
	scripts  *scripts

	moved   bool         // a clock fault made the last recorded change of the lock's keys
	expiry  *item        // the earliest expiry of the lock's keys
	keys    []faults.Key // contents as last recorded
	overdue bool         // the expiry came due while the server was stopped or down

	offset int               // number of effects that the server has produced or inherited
	known  map[string]record // data as last sent to followers; nil for a replica
	in     feed              // the connection to the leader

	waiters []*waiter

	serving   *conn // the connection whose request is being executed
	tracking  tracking
	elsewhere bool // some client has selected a database other than 0
	several   bool // databases other than 0 may have data; miniredis creates each that is accessed
}

// newRedis creates a server process, from the pool if it has a server.
func (w *World) newRedis(of *topology.Server) (*redis, error) {
	mini, err := w.cfg.Spares.take(of.Name)
	if err != nil {
		return nil, err
	}
	s := &redis{Server: of, world: w, mini: mini, scripts: newScripts(w.machine)}
	if of.Leader == nil {
		s.known = map[string]record{}
	} else {
		s.in = feed{of: of.Leader, connected: true}
	}
	s.mini.SetTime(s.now())
	s.mini.ClockTTL(true)
	s.commands = s.mini.Server()
	s.commands.SetPreHook(s.before)
	return s, nil
}

// newPeer returns a miniredis peer that writes to out. The buffer is small because out is in
// memory.
func newPeer(out io.Writer) *server.Peer { return server.NewPeer(bufio.NewWriterSize(out, 256)) }

// now returns the time on the server's clock.
func (s *redis) now() time.Time {
	now := time.Now()
	return now.Add(s.Clock.Offset(now))
}

// tick sets miniredis to the server's clock; keys whose time has come expire.
func (s *redis) tick() { s.mini.SetTime(s.now()) }

// move switches from the clock was to s.Clock. Redis stores expiry as dates, so the remaining
// lifetime shrinks or grows when the clock jumps. miniredis stores the remaining lifetime, so move
// must add the time when the clock goes back.
func (s *redis) move(was topology.Clock) {
	now := time.Now()
	s.mini.SetTime(now.Add(was.Offset(now)))
	s.mini.DB(0) // miniredis counts the time up to now only when it is accessed
	by := s.Clock.Offset(now) - was.Offset(now)
	s.tick()
	if by < 0 {
		s.mini.FastForward(by)
	}
}

// dispatch executes a request and writes the reply to the connection's out buffer.
func (s *redis) dispatch(m *message) {
	s.tick()
	if s.denies(m.conn, m.command, m.words) {
		m.conn.peer.WriteError(oomReply)
		m.conn.peer.Flush()
		return
	}
	if !s.transact(m.conn, m.command, m.words) {
		s.execute(m.conn.peer, m.command, m.words)
	}
	m.conn.peer.Flush()
}

// execute executes a command from any source and writes the reply to from. command is its name in
// upper case. execute never blocks: a command that would block gets a null reply.
func (s *redis) execute(from *server.Peer, command string, words []string) {
	s.tracked(words, func() { s.perform(from, command, words) })
}

func (s *redis) perform(from *server.Peer, command string, words []string) {
	switch command {
	case "MOVE", "COPY", "SWAPDB":
		s.several = true
	case "EVAL", "EVALSHA", "EVAL_RO", "EVALSHA_RO":
		from.WriteRaw(string(s.eval(from, command, words)))
		return
	case "SCRIPT":
		from.WriteRaw(string(s.script(words)))
		return
	case "FLUSHALL", "FLUSHDB":
		if flushes(words) && s.Leads() {
			s.flush()
			s.flushed()
		}
	case "CLIENT":
		if c := s.serving; c != nil && c.peer == from && s.client(c, words) {
			return
		}
	case "SELECT":
		if len(words) == 2 && words[1] != "0" {
			if len(s.tracking.clients) > 0 {
				from.WriteError("ERR SELECT of another database than 0 is not possible in this world while a client tracks keys")
				return
			}
			s.elsewhere, s.several = true, true
		}
	}
	if _, blocks := s.blocksFor(words); blocks {
		answer, _ := s.once(words, from.Resp3)
		from.WriteRaw(string(answer))
		return
	}
	if s.exceeds(from, command, words) {
		return
	}
	s.commands.Dispatch(from, words)
}

// operate executes an operator's command and returns the reply in RESP.
func (s *redis) operate(words ...string) string {
	var answer strings.Builder
	peer := newPeer(&answer)
	s.tick()
	s.execute(peer, words[0], words)
	peer.Flush()
	return answer.String()
}

// forget removes the server's state of a closed connection.
func (s *redis) forget(c *conn) {
	if c.tracker.on {
		s.untrack(c)
	}
	if c.subscribed {
		for _, command := range [...]string{"UNSUBSCRIBE", "PUNSUBSCRIBE"} {
			s.commands.Dispatch(c.peer, []string{command})
		}
	}
	c.peer.Close()
}

// readKeys returns the contents of the lock's keys, with their expiry on the true clock since
// began.
func (s *redis) readKeys(lock faults.Lock, began time.Time) []faults.Key {
	s.tick()
	keys := make([]faults.Key, len(lock.Keys))
	for i, name := range lock.Keys {
		if s.mini.Exists(name) {
			keys[i] = s.lookAt(name, began)
		}
	}
	return keys
}

func (s *redis) lookAt(name string, began time.Time) faults.Key {
	db := s.mini.DB(0)
	found := faults.Key{Type: db.Type(name)}
	switch found.Type { // errors are ignored: a key that cannot be read has no words
	case "string":
		value, _ := db.Get(name)
		found.Words = []string{value}
	case "hash":
		fields, _ := db.HKeys(name)
		values := make(map[string]string, len(fields))
		for _, field := range fields {
			values[field] = db.HGet(name, field)
		}
		found.Words = faults.Hash(values)
	case "list":
		found.Words, _ = db.List(name)
	case "set":
		found.Words, _ = db.Members(name)
	case "zset":
		scores, _ := db.SortedSet(name)
		var members []faults.Scored
		for member, score := range scores {
			members = append(members, faults.Scored{Member: member, Score: score})
		}
		found.Words = faults.SortedSet(members)
	default:
		found.Type = "other"
	}
	if ttl := db.TTL(name); ttl > 0 {
		// Rounded up: just before that moment the key would still exist.
		left := min(math.Ceil(float64(ttl)/s.Clock.Rate()), float64(topology.Century))
		found.Expires = time.Now().Add(time.Duration(left)).Sub(began)
	}
	return found
}

// observe records a change of the lock's keys on a server and returns what a command did to the
// lock. observe also sends writes to the replicas and schedules the expiry of the keys.
func (w *World) observe(s *redis, cause checker.Cause, client string, words []string) (did faults.Effect) {
	if cause == checker.ByCommand && faults.LeavesKeys(strings.ToUpper(words[0])) {
		return ""
	}
	did = w.saw(s, s.readKeys(w.cfg.Lock, w.began), cause, client, words)
	if s.Leads() {
		w.replicate(s)
	}
	return did
}

func (w *World) saw(s *redis, keys []faults.Key, cause checker.Cause, client string, words []string) (did faults.Effect) {
	event, did, changed := w.ledger.Saw(s.Node.Name, s.Name, keys, cause, client, words, slack)
	if !changed {
		return ""
	}
	w.emit(event)
	if s.expiry != nil {
		s.expiry.dead = true
		s.expiry = nil
	}
	s.moved = cause == checker.ByClock
	s.keys = keys
	w.planExpiry(s, keys)
	return did
}

func (w *World) planExpiry(s *redis, keys []faults.Key) {
	if at := faults.Expiry(keys); at != 0 {
		s.expiry = w.plan(w.began.Add(at), rank{who: servers + s.Name, what: "expiry"}, func() { w.expire(s) })
	}
}

// slack is the granularity of expiry dates; Redis counts in milliseconds.
const slack = time.Millisecond

// expire records that a key of the lock has expired, and informs the replicas. If the key still
// exists, because its expiry moved by less than slack or because of rounding on a drifting clock,
// expire schedules itself again.
func (w *World) expire(s *redis) {
	cause := checker.ByExpiry
	if s.moved || s.Clock.Rate() != 1 {
		cause = checker.ByClock
	}
	s.expiry = nil
	if s.overdue = !s.Answers(); s.overdue {
		return
	}
	keys := s.readKeys(w.cfg.Lock, w.began)
	if faults.SameKeys(keys, s.keys) {
		w.planExpiry(s, keys)
		return
	}
	w.saw(s, keys, cause, "", nil)
	if s.Leads() {
		w.replicate(s)
	}
}

// settle records an expiry that is due. settle is called before another change on the server, so
// that the history does not name that change as the cause.
func (w *World) settle(s *redis) {
	if s.expiry == nil || time.Until(s.expiry.due) > slack {
		return
	}
	if !faults.SameKeys(s.readKeys(w.cfg.Lock, w.began), s.keys) {
		s.expiry.dead = true
		w.expire(s)
	}
}
