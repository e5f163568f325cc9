package sim

import (
	"bytes"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/alicebob/miniredis/v2/server"

	"github.com/lockfault/lockfault/checker"
	"github.com/lockfault/lockfault/faults/topology"
	"github.com/lockfault/lockfault/internal/rediscmd"
)

// waiter is a blocked request. As in Redis, later requests on its connection wait too.
type waiter struct {
	request *message
	limit   time.Duration // 0 means no limit
	over    bool          // the limit has passed
	// poll returns the reply, or nil to keep waiting. If last is true, poll must return a reply.
	poll func(last bool) []byte
}

// waiting returns the waiter of a request, or nil if the request does not block. miniredis has no
// replicas for WAIT. Its goroutines for BLPOP and similar commands race each other, whereas Redis
// serves the longest waiter first.
func (w *World) waiting(m *message) *waiter {
	if m.command == "WAIT" {
		return m.conn.server.waitForReplicas(m)
	}
	limit, ok := m.conn.server.blocksFor(m.words)
	if !ok {
		return nil
	}
	if m.command == "XREAD" && slices.Contains(m.words, "$") {
		return refuse(m, "XREAD with BLOCK and $ is not possible in this world")
	}
	return &waiter{request: m, limit: limit, poll: func(last bool) []byte { return w.tryOnce(m, last) }}
}

// waitForReplicas returns the waiter of a WAIT request. The reply comes when enough replicas have
// the data that the server had after the previous request on this connection, or after the timeout.
// https://redis.io/docs/latest/commands/wait/ mentions writes, but Redis 7.0.15 counts from the
// last request of any kind, and from offset 0 if there was none.
func (s *redis) waitForReplicas(m *message) *waiter {
	if s.Follows() {
		return refuse(m, "WAIT cannot be used with replica instances.")
	}
	if len(m.words) != 3 {
		return refuse(m, "wrong number of arguments for 'wait' command")
	}
	need, err := strconv.Atoi(m.words[1])
	if err != nil {
		return refuse(m, "value is not an integer or out of range")
	}
	millis, err := strconv.ParseInt(m.words[2], 10, 32)
	if err != nil {
		return refuse(m, "timeout is not an integer or out of range")
	}
	if millis < 0 {
		return refuse(m, "timeout is negative")
	}
	offset := m.conn.seen
	return &waiter{request: m, limit: time.Duration(millis) * time.Millisecond, poll: func(last bool) []byte {
		if have := s.caughtUp(offset); last || have >= need {
			return fmt.Appendf(nil, ":%d\r\n", have)
		}
		return nil
	}}
}

// refuse returns a waiter that replies with an error at once.
func refuse(m *message, text string) *waiter {
	return &waiter{request: m, poll: func(bool) []byte { return []byte("-ERR " + text + "\r\n") }}
}

func (s *redis) caughtUp(offset int) (count int) {
	for _, f := range s.world.followers(s) {
		if f.in.connected && f.in.acked >= offset {
			count++
		}
	}
	return count
}

// blocksFor reports whether a command may block until a key has something, and for how long; 0
// means no limit. An invalid limit counts as 0, because the server itself rejects it.
func (s *redis) blocksFor(words []string) (limit time.Duration, ok bool) {
	command := rediscmd.Of(words)
	word, unit, ok := command.TimeoutIn(words)
	if !ok || len(command.Keys) == 0 || !s.commands.IsRegisteredCommand(command.Name) {
		return 0, false
	}
	number, err := strconv.ParseFloat(word, 64)
	if err != nil || number != number || number < 0 {
		number = 0
	}
	return time.Duration(min(number*float64(unit), float64(topology.Century))), true
}

// tryOnce executes a blocking command once. tryOnce returns nil if the command would block and last
// is false.
func (w *World) tryOnce(m *message, last bool) []byte {
	s := m.conn.server
	if len(s.tracking.clients) > 0 {
		s.foresee(m.words[1:])
	}
	answer, nothing := s.once(m.words, m.conn.peer.Resp3)
	if nothing && !last {
		return nil
	}
	if !nothing {
		s.invalidate(m.words)
		m.did = w.observe(s, checker.ByCommand, m.conn.client.Name, m.words)
	}
	return answer
}

// once executes a blocking command inside a transaction, where it never blocks. nothing reports a
// null reply, which means that the command would block.
func (s *redis) once(words []string, resp3 bool) (answer []byte, nothing bool) {
	s.tick()
	trial := server.Peer{Resp3: resp3}
	s.ask(&trial, "MULTI")
	if answer := s.ask(&trial, words...); answer[0] == '-' {
		return answer, false
	}
	answer = bytes.TrimPrefix(s.ask(&trial, "EXEC"), []byte("*1\r\n"))
	return answer, len(answer) > 1 && (answer[0] == '_' || answer[1] == '-' && answer[0] != '-')
}

// keepWaiting replies to a request at once if possible, and otherwise lets it wait up to its limit.
func (w *World) keepWaiting(wait *waiter) {
	c := wait.request.conn
	s := c.server
	c.waiter = wait
	s.waiters = append(s.waiters, wait)
	w.serve(s)
	if c.waiter == wait && wait.limit > 0 {
		over := rank{who: servers + s.Name, where: c.client.Name, what: "wait", message: wait.request}
		w.plan(time.Now().Add(wait.limit), over, func() {
			wait.over = true
			w.serve(s)
		})
	}
}

// serve replies to the blocked requests that can complete now, the longest waiting first. serve
// starts over after each reply, because one reply may unblock another request.
func (w *World) serve(s *redis) {
	for i := 0; i < len(s.waiters) && !s.Paused; {
		wait := s.waiters[i]
		answer := wait.poll(wait.over)
		if answer == nil {
			i++
			continue
		}
		s.waiters = slices.Delete(s.waiters, i, i+1)
		c := wait.request.conn
		c.waiter = nil
		w.send(wait.request.answer(answer))
		pending := c.pending
		c.pending = nil
		for _, m := range pending {
			c.travelling--
			if !c.gone {
				m.Enter()
			}
		}
		i = 0
	}
	if s.serving == nil { // otherwise the reply to the current request comes first
		w.tellTracking(s)
	}
}
