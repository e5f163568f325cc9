package sim

import (
	"strings"

	"github.com/alicebob/miniredis/v2/server"

	"github.com/lockfault/lockfault/internal/rediscmd"
)

// The functions below correct differences between miniredis and Redis that package conformance
// found.

// before runs before miniredis executes a command. before rejects writes to a replica, and reports
// whether it replied.
func (s *redis) before(peer *server.Peer, command string, _ ...string) bool {
	if !s.Follows() || !s.writes(command) {
		return false
	}
	peer.WriteError(readOnly)
	return true
}

// readOnly is the error with which a replica rejects a write.
const readOnly = "READONLY You can't write against a read only replica."

// writes reports whether this server has a command, in upper case, that may itself change data.
func (s *redis) writes(command string) bool {
	return rediscmd.Lookup(command).MayWrite() && s.commands.IsRegisteredCommand(command)
}

// flush removes all keys individually, so that clients that watch a key notice.
func (s *redis) flush() {
	s.tick()
	db := s.mini.DB(0)
	for _, key := range db.Keys() {
		db.Del(key)
	}
}

// flushes reports whether a command that removes all keys has valid arguments.
func flushes(words []string) bool {
	return len(words) == 1 || len(words) == 2 && strings.EqualFold(words[1], "ASYNC")
}
