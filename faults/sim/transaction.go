package sim

import (
	"bytes"
	"strings"

	"github.com/alicebob/miniredis/v2/server"
)

// This file executes transactions, because miniredis would run the scripts and blocking commands in
// them itself. The file asks miniredis whether a command can be queued and whether watched keys
// have changed.

// transaction holds the commands that a connection has queued since MULTI.
type transaction struct {
	queued  [][]string
	spoiled bool        // a command could not be queued
	denied  bool        // the server is out of memory, and a queued command could use more
	trial   server.Peer // peer on which each command is queued as a test, never executed
}

// transact handles a request that belongs to a transaction, and reports whether it did.
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
		case command != "MULTI" && command != "WATCH": // these two fail without spoiling the transaction
			tx.spoiled = true
		}
		c.peer.WriteRaw(string(answer))
	}
	return true
}

// exec executes EXEC. alone is false if the request has too many words.
func (s *redis) exec(c *conn, tx *transaction, alone bool) {
	reason := ""
	switch {
	case !alone:
		reason = " because of: wrong number of arguments for 'exec' command"
	case tx.denied:
		reason = " because of: " + oomReply
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
		c.peer.WriteRaw(string(answer)) // a watched key has changed
		return
	}
	c.peer.WriteLen(len(tx.queued))
	for _, words := range tx.queued {
		command := strings.ToUpper(words[0])
		if command == "WAIT" { // WAIT does not block in a transaction
			wait := s.waitForReplicas(&message{conn: c, words: words})
			c.peer.WriteRaw(string(wait.poll(true)))
			continue
		}
		s.execute(c.peer, command, words)
	}
}

// ask executes a command with the state of a peer and returns the reply, which the client does not
// see.
func (s *redis) ask(as *server.Peer, words ...string) []byte {
	var out bytes.Buffer
	peer := newPeer(&out)
	peer.Ctx, peer.Resp3 = as.Ctx, as.Resp3
	s.commands.Dispatch(peer, words)
	peer.Flush()
	as.Ctx = peer.Ctx // miniredis may have created it in this call
	return out.Bytes()
}
