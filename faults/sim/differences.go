package sim

import (
	"crypto/sha1"
	"encoding/hex"
	"fmt"
	"regexp"
	"strings"

	"github.com/alicebob/miniredis/v2/server"
)

// What follows is where Redis does something else than miniredis does, as
// package conformance found out.

// before has its say before the server executes a command, which may be one of
// a script, and reports whether that was all.
func (s *redis) before(peer *server.Peer, command string, args ...string) bool {
	words := append([]string{command}, args...)
	_, blocks := blocksFor(words)
	switch script := peer != s.serving && s.serving != nil; {
	case s.follows() && s.writes(command):
		peer.WriteError(readOnly)
	case script && (blocks || command == "WAIT"):
		// miniredis would wait for somebody whom it lets in only when the
		// script is over.
		peer.WriteError("ERR This Redis command is not allowed from script")
	default:
		return false
	}
	return true
}

// readOnly is what a replica says to a write.
const readOnly = "READONLY You can't write against a read only replica."

// writes reports whether a command, in upper case, may change data by itself.
func (s *redis) writes(command string) bool {
	switch command {
	case "AUTH", "CLIENT", "CLUSTER", "COMMAND", "DISCARD", "ECHO", "EVAL", "EVALSHA", "EXEC", "HELLO", "INFO", "MEMORY",
		"MULTI", "OBJECT", "PING", "PSUBSCRIBE", "PUBLISH", "PUBSUB", "PUNSUBSCRIBE", "QUIT", "SCRIPT", "SELECT",
		"SUBSCRIBE", "TIME", "UNSUBSCRIBE", "UNWATCH", "WAIT", "WATCH", "XINFO":
		return false
	}
	return s.commands.IsRegisteredCommand(command) && !s.commands.IsReadOnlyCommand(command)
}

// flush removes all keys, one by one: who watches one is to notice.
func (s *redis) flush() {
	s.tick()
	db := s.mini.DB(0)
	for _, key := range db.Keys() {
		db.Del(key)
	}
}

// flushes reports whether a command removes all keys and is right.
func flushes(words []string) bool {
	switch strings.ToUpper(words[0]) {
	case "FLUSHALL", "FLUSHDB":
		return len(words) == 1 || len(words) == 2 && strings.EqualFold(words[1], "ASYNC")
	}
	return false
}

// spoil makes the transaction fail that is being queued on the connection, as
// every command does that can't be queued. miniredis knows of some.
func (c *conn) spoil() {
	c.server.commands.Dispatch(c.peer, []string{"GET"}) // without its argument
	c.peer.Flush()
	_, _ = c.out.take() // nobody sees that
}

var scriptFailed = regexp.MustCompile(`^-ERR Error compiling script \(new function\): \S*:(\d+): (.*?)\s*stack traceback:\s*(.*)`)

// mend puts the error with which a script ended into the words of Redis: the
// command's own, with its code, if it was one that failed. Redis also keeps a
// script that failed, as long as it could be read.
func (s *redis) mend(request *message, frame []byte) []byte {
	if !strings.HasPrefix(request.command, "EVAL") || len(request.words) < 2 || frame[0] != '-' {
		return frame
	}
	found := scriptFailed.FindSubmatch(frame)
	if found == nil {
		return frame
	}
	line, text, trace := found[1], string(found[2]), string(found[3])
	sum := strings.ToLower(request.words[1])
	if !strings.HasPrefix(request.command, "EVALSHA") {
		s.operate("SCRIPT", "LOAD", request.words[1])
		digest := sha1.Sum([]byte(request.words[1]))
		sum = hex.EncodeToString(digest[:])
	}
	code, _, _ := strings.Cut(text, " ")
	switch {
	case !strings.HasPrefix(trace, "[G]: in function 'call'"):
		text = fmt.Sprintf("ERR user_script:%s: %s", line, text)
	case code != strings.ToUpper(code):
		text = "ERR " + text
	}
	text, _, _ = strings.Cut(text, " script: ")
	return fmt.Appendf(nil, "-%s script: %s, on @user_script:%s.\r\n", text, sum, line)
}
