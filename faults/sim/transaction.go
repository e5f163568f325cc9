package sim

import (
	"bytes"
	"strings"

	"github.com/alicebob/miniredis/v2/server"
)

// Transactions are executed here and not by miniredis, which would keep scripts
// and what waits to itself. It is asked what it knows: whether a command can be
// queued, and whether the keys that are watched are as they were.

// transaction is what a connection queued since MULTI.
type transaction struct {
	queued  [][]string
	spoiled bool        // something could not be queued
	trial   server.Peer // on which each command is queued, never to be executed
}

// transact has its say before a connection's command is executed, and reports
// whether that was all.
func (s *redis) transact(c *conn, command string, words []string) bool {
	tx := c.transaction
	switch {
	case tx == nil && command == "MULTI":
		tx = &transaction{}
		answer := s.ask(&tx.trial, words...)
		if answer[0] == '+' {
			c.transaction = tx
		}
		c.peer.WriteRaw(string(answer))
	case tx == nil || command == "QUIT":
		return false
	case command == "DISCARD" && len(words) == 1:
		c.transaction = nil
		c.peer.WriteRaw(string(s.ask(c.peer, "UNWATCH")))
	case command == "EXEC":
		c.transaction = nil
		s.exec(c, tx, len(words) == 1)
	default:
		var answer []byte
		if aboutTracking(words) {
			answer = queueTracking(words)
		} else {
			answer = s.ask(&tx.trial, words...)
		}
		switch {
		case answer[0] != '-':
			tx.queued = append(tx.queued, words)
			answer = []byte("+QUEUED\r\n")
		case command != "MULTI" && command != "WATCH": // out of place, but do no harm
			tx.spoiled = true
		}
		c.peer.WriteRaw(string(answer))
	}
	return true
}

// exec is EXEC, alone or with words that are too many.
func (s *redis) exec(c *conn, tx *transaction, alone bool) {
	reason := ""
	switch {
	case !alone:
		reason = " because of: wrong number of arguments for 'exec' command"
	case tx.spoiled:
		reason = " because of previous errors."
	}
	if reason != "" {
		s.ask(c.peer, "UNWATCH")
		c.peer.WriteError("EXECABORT Transaction discarded" + reason)
		return
	}
	s.ask(c.peer, "MULTI")
	if answer := s.ask(c.peer, "EXEC"); !bytes.Equal(answer, []byte("*0\r\n")) {
		c.peer.WriteRaw(string(answer)) // something that was watched changed
		return
	}
	c.peer.WriteLen(len(tx.queued))
	for _, words := range tx.queued {
		command := strings.ToUpper(words[0])
		if command == "WAIT" { // which would not wait here
			wait := s.waitForReplicas(&message{conn: c, words: words})
			c.peer.WriteRaw(string(wait.poll(true)))
			continue
		}
		s.execute(c.peer, command, words)
	}
}

// ask executes a command as a connection and returns the answer, which the
// client doesn't see.
func (s *redis) ask(as *server.Peer, words ...string) []byte {
	var out bytes.Buffer
	peer := newPeer(&out)
	peer.Ctx, peer.Resp3 = as.Ctx, as.Resp3
	s.commands.Dispatch(peer, words)
	peer.Flush()
	as.Ctx = peer.Ctx // which miniredis may only have made now
	return out.Bytes()
}
