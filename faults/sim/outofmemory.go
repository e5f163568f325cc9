package sim

import (
	"slices"

	"github.com/lockfault/lockfault/internal/rediscmd"
)

// oomReply is the reply of a server at maxmemory that evicts nothing.
const oomReply = "OOM command not allowed when used memory > 'maxmemory'."

// outOfMemory reports whether the server denies commands. A replica has no limit, by the default of
// replica-ignore-maxmemory.
func (s *redis) outOfMemory() bool { return s.Full && s.Leads() }

// usesMemory reports whether a command is denied when the server is out of memory.
func usesMemory(words []string) bool { return rediscmd.Of(words).Has(rediscmd.DenyOOM) }

// denies reports whether the server is out of memory and denies a client's request. If it does, the
// client's transaction is spoiled. A transaction uses memory for its queue, so every request in it is
// denied except those that end it. Errors of unknown commands take precedence. Source: processCommand in
// server.c of Redis 7.0.
func (s *redis) denies(c *conn, command string, words []string) bool {
	switch tx := c.transaction; {
	case !s.outOfMemory() || !s.commands.IsRegisteredCommand(command):
		return false
	case tx == nil:
		return usesMemory(words)
	case command == "EXEC":
		if slices.ContainsFunc(tx.queued, usesMemory) {
			tx.spoiled, tx.denied = true, true
		}
		return false // EXEC replies itself
	case command == "DISCARD" || command == "QUIT" || command == "RESET":
		return false
	default:
		tx.spoiled = true
		return true
	}
}
