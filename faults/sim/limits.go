package sim

import (
	"bytes"
	"math"
	"strconv"

	"github.com/alicebob/miniredis/v2/server"
)

// How long Redis lets a string become, in bytes, and which bit of it is the last:
// miniredis would make one of any length.
const (
	longestString = 512 << 20
	lastBit       = math.MaxUint32
)

const (
	tooLong   = "ERR string exceeds maximum allowed size (proto-max-bulk-len)"
	noSuchBit = "ERR bit offset is not an integer or out of range"
)

// exceeds answers a command that would make a string longer than Redis lets it
// become, and a SETRANGE of nothing, which makes none longer, and reports whether it
// did. Whatever else is wrong with a command miniredis says.
func (s *redis) exceeds(from *server.Peer, command string, words []string) bool {
	if s.Follows() {
		return false
	}
	switch {
	case command == "SETBIT" && len(words) == 4:
		if bit, err := strconv.Atoi(words[2]); err != nil || bit <= lastBit {
			return false
		}
		from.WriteError(noSuchBit)
		return true
	case command == "SETRANGE" && len(words) == 4:
		offset, err := strconv.Atoi(words[2])
		if err != nil || offset < 0 || words[3] != "" && offset <= longestString-len(words[3]) {
			return false
		}
		length := s.ask(from, "STRLEN", words[1])
		if words[3] == "" || length[0] == '-' {
			from.WriteRaw(string(length))
			return true
		}
		from.WriteError(tooLong)
		return true
	case command == "APPEND" && len(words) == 3:
		length := s.ask(from, "STRLEN", words[1])
		n, err := strconv.Atoi(string(bytes.TrimSpace(length[1:])))
		if err != nil || n <= longestString-len(words[2]) {
			return false
		}
		from.WriteError(tooLong)
		return true
	}
	return false
}
