package sim

import (
	"bytes"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/alicebob/miniredis/v2/server"

	"github.com/lockfault/lockfault/checker"
	"github.com/lockfault/lockfault/faults/topology"
)

// waiter is a request that the server has not answered yet. Requests behind it
// on its connection wait too, as Redis does it.
type waiter struct {
	request *message
	limit   time.Duration // 0 means for ever
	over    bool          // the limit has passed
	// poll returns the answer, nil if there is none yet. The last time it
	// must have one.
	poll func(last bool) []byte
}

// waiting returns how a request waits, nil if it is not of that kind. miniredis
// has no replicas to wait for; and what it does for BLPOP and its like is done
// by goroutines that race each other, where Redis serves the longest waiter
// first.
func (w *World) waiting(m *message) *waiter {
	if m.command == "WAIT" {
		return m.conn.server.waitForReplicas(m)
	}
	limit, ok := blocksFor(m.command, m.words)
	if !ok {
		return nil
	}
	if m.command == "XREAD" && slices.Contains(m.words, "$") {
		return refuse(m, "XREAD with BLOCK and $ is not possible in this world")
	}
	return &waiter{request: m, limit: limit, poll: func(last bool) []byte { return w.tryOnce(m, last) }}
}

// waitForReplicas is WAIT: it is answered when enough replicas have what the
// server had after the request before it on this connection, or when time is up.
// https://redis.io/docs/latest/commands/wait/ speaks of writes, but Redis 7.0.15
// counts from the last request of any kind, and from nothing if it is the first.
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

// refuse returns how a request waits that is answered by an error at once.
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

// blocksFor reports whether a command, whose name is there in upper case too,
// may keep its client waiting, and for how long. A limit that is no number is
// for the server to refuse.
func blocksFor(command string, words []string) (limit time.Duration, ok bool) {
	at, unit := len(words)-1, float64(time.Second)
	switch command {
	case "BLPOP", "BRPOP", "BLMOVE", "BRPOPLPUSH", "BZPOPMIN", "BZPOPMAX":
	case "BZMPOP":
		at = min(1, at)
	case "XREAD", "XREADGROUP":
		block := slices.IndexFunc(words, func(word string) bool { return strings.EqualFold(word, "BLOCK") })
		if block < 0 || block == at {
			return 0, false
		}
		at, unit = block+1, float64(time.Millisecond)
	default:
		return 0, false
	}
	number, err := strconv.ParseFloat(words[at], 64)
	if err != nil || number != number || number < 0 {
		number = 0
	}
	return time.Duration(min(number*unit, float64(topology.Century))), true
}

// tryOnce executes a command that blocks, and returns nil if it would go on
// waiting.
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

// once executes a command that blocks as a transaction would: there it never
// does, but answers nil, which means nothing.
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

// keepWaiting answers a request if that is possible at once, and else lets it
// wait.
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

// serve answers the requests that can be answered now, the longest waiting
// first, until none is left: one answer may make way for another.
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
	if s.serving == nil { // else its request comes first
		w.tellTracking(s)
	}
}
