package sim

import (
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/lockfault/lockfault/faults"
)

// waiter is a client that waits for replicas.
type waiter struct {
	request *message
	need    int
	offset  int
	done    bool
}

// waitForReplicas answers WAIT: when enough replicas have everything that the
// primary has now, or when time is up. miniredis has no replicas to ask.
func (w *World) waitForReplicas(m *message) {
	s := m.conn.server
	if len(m.words) != 3 {
		w.reply(m, "-ERR wrong number of arguments for 'wait' command\r\n")
		return
	}
	need, err := strconv.Atoi(m.words[1])
	millis, err2 := strconv.Atoi(m.words[2])
	if err != nil || err2 != nil || need < 0 || millis < 0 {
		w.reply(m, "-ERR value is not an integer or out of range\r\n")
		return
	}
	waiting := &waiter{request: m, need: need, offset: s.offset}
	s.waiters = append(s.waiters, waiting)
	w.recount(s)
	if !waiting.done && millis > 0 {
		due := time.Now().Add(time.Duration(millis) * time.Millisecond)
		w.plan(due, "~ "+s.name+" wait", func() { w.finish(s, waiting) })
	}
}

// recount answers the waiters that have enough replicas now.
func (w *World) recount(s *redis) {
	for _, waiting := range slices.Clone(s.waiters) {
		if s.caughtUp(waiting.offset) >= waiting.need {
			w.finish(s, waiting)
		}
	}
}

func (s *redis) caughtUp(offset int) (count int) {
	for _, replica := range s.replicas() {
		if s.acked[replica] >= offset {
			count++
		}
	}
	return count
}

func (w *World) finish(s *redis, waiting *waiter) {
	if waiting.done {
		return
	}
	waiting.done = true
	s.waiters = slices.DeleteFunc(s.waiters, func(other *waiter) bool { return other == waiting })
	w.reply(waiting.request, fmt.Sprintf(":%d\r\n", s.caughtUp(waiting.offset)))
}

func (w *World) reply(request *message, text string) {
	if request.conn.gone {
		return
	}
	w.send(&message{conn: request.conn, way: faults.After, command: request.command, text: request.text, bytes: []byte(text)})
}
