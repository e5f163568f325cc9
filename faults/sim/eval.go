package sim

import (
	"bytes"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/alicebob/miniredis/v2/server"

	"github.com/lockfault/lockfault/faults/sim/lua"
	"github.com/lockfault/lockfault/internal/rediscmd"
)

// This package runs scripts itself. miniredis creates a Lua state and loads its libraries for each
// script, which costs more than the rest of a command.

// scripts is a server's state for scripts, which it keeps only in memory.
type scripts struct {
	machine *lua.Machine // shared by the world, since only one goroutine executes commands
	known   map[string]string
	random  lua.Random
	peer    *server.Peer // executes the commands that a script calls
	said    bytes.Buffer // replies to these commands
	wrote   bool         // the script has called a command that writes
}

func newScripts(machine *lua.Machine) *scripts {
	s := &scripts{machine: machine, known: map[string]string{}}
	s.peer = newPeer(&s.said)
	return s
}

// eval executes EVAL, EVALSHA, EVAL_RO and EVALSHA_RO, and returns the reply.
func (s *redis) eval(from *server.Peer, command string, words []string) []byte {
	if len(words) < 3 {
		return failure("ERR wrong number of arguments for '%s' command", strings.ToLower(command))
	}
	unknown := failure("NOSCRIPT No matching script. Please use EVAL.")
	loaded := strings.HasPrefix(command, "EVALSHA")
	if loaded && len(words[1]) != sha1Letters {
		return unknown
	}
	args := words[3:]
	count, err := strconv.Atoi(words[2])
	switch {
	case err != nil:
		return failure("ERR value is not an integer or out of range")
	case count > len(args):
		return failure("ERR Number of keys can't be greater than number of args")
	case count < 0:
		return failure("ERR Number of keys can't be negative")
	}
	var text, sum string
	if loaded {
		var ok bool
		sum = strings.ToLower(words[1])
		if text, ok = s.scripts.known[sum]; !ok {
			return unknown
		}
	} else {
		text = words[1]
		if sum, err = s.scripts.load(text); err != nil {
			return failure("%s", err)
		}
	}
	s.scripts.peer.Ctx, s.scripts.wrote = from.Ctx, false // the client's selected database
	reads := strings.HasSuffix(command, "_RO")
	return s.scripts.machine.Run(lua.Call{
		Text: text, Sum: sum, Keys: args[:count], Args: args[count:], RESP3: from.Resp3, Random: &s.scripts.random,
		Do: func(words []string, resp3 bool) []byte { return s.scripted(words, resp3, reads) },
	})
}

// sha1Letters is the length of a script's hexadecimal SHA-1.
const sha1Letters = 40

// load compiles and stores a script, and returns its SHA-1. A script that fails at run time is
// stored too.
func (s *scripts) load(text string) (sum string, err error) {
	if err := s.machine.Compile(text); err != nil {
		return "", err
	}
	sum = lua.Sum(text)
	s.known[sum] = text
	return sum, nil
}

// scripted executes a command that a script calls, and returns the reply. If reads is set, the
// script is read-only and writes fail.
func (s *redis) scripted(words []string, resp3, reads bool) []byte {
	command := strings.ToUpper(words[0])
	_, blocks := s.blocksFor(words)
	switch {
	case rediscmd.Of(words).Has(rediscmd.NoScript):
		return failure("ERR This Redis command is not allowed from script")
	case blocks && strings.HasPrefix(command, "XREAD"):
		return failure("ERR %s command is not allowed with BLOCK option from scripts", strings.ToLower(command))
	case reads && s.writes(command):
		return failure("ERR Write commands are not allowed from read-only scripts.")
	case s.outOfMemory() && !s.scripts.wrote && usesMemory(words): // a script is not stopped between its writes
		return failure("%s", oomReply)
	}
	s.scripts.wrote = s.scripts.wrote || s.writes(command)
	peer, said := s.scripts.peer, &s.scripts.said
	if command == "SELECT" {
		peer.Ctx = nil // the script's selection must not change the client's
	}
	peer.Resp3 = resp3
	s.execute(peer, command, words)
	peer.Flush()
	answer := slices.Clone(said.Bytes())
	said.Reset()
	switch {
	case bytes.HasPrefix(answer, []byte("-ERR unknown command")):
		return failure("ERR Unknown Redis command called from script")
	case bytes.HasPrefix(answer, []byte("-ERR wrong number of arguments")):
		return failure("ERR Wrong number of args calling Redis command from script")
	}
	return answer
}

// script executes SCRIPT and returns the reply.
func (s *redis) script(words []string) []byte {
	if len(words) < 2 {
		return failure("ERR wrong number of arguments for 'script' command")
	}
	sub, args := strings.ToLower(words[1]), words[2:]
	wrong := failure("ERR wrong number of arguments for 'script|%s' command", sub)
	switch sub {
	case "load":
		if len(args) != 1 {
			return wrong
		}
		sum, err := s.scripts.load(args[0])
		if err != nil {
			return failure("%s", err)
		}
		return fmt.Appendf(nil, "$%d\r\n%s\r\n", len(sum), sum)
	case "exists":
		if len(args) == 0 {
			return wrong
		}
		answer := fmt.Appendf(nil, "*%d\r\n", len(args))
		for _, sum := range args {
			known := 0
			if _, ok := s.scripts.known[strings.ToLower(sum)]; ok {
				known = 1
			}
			answer = fmt.Appendf(answer, ":%d\r\n", known)
		}
		return answer
	case "flush":
		if len(args) > 1 || len(args) == 1 && !strings.EqualFold(args[0], "SYNC") && !strings.EqualFold(args[0], "ASYNC") {
			return failure("ERR SCRIPT FLUSH only support SYNC|ASYNC option")
		}
		clear(s.scripts.known)
		return []byte("+OK\r\n")
	}
	return failure("ERR unknown subcommand '%s'. Try SCRIPT HELP.", words[1])
}

// failure returns an error reply in RESP.
func failure(format string, args ...any) []byte {
	return fmt.Appendf(nil, "-"+format+"\r\n", args...)
}
