package sim

import (
	"bytes"
	"math"
	"strconv"

	"github.com/alicebob/miniredis/v2/server"
)

// The maximum length of a string in Redis, in bytes, and the offset of its last bit. miniredis has
// no such limits.
const (
	longestString = 512 << 20
	lastBit       = math.MaxUint32
)

const (
	tooLong   = "ERR string exceeds maximum allowed size (proto-max-bulk-len)"
	noSuchBit = "ERR bit offset is not an integer or out of range"
)

// exceeds replies to a command that would make a string longer than Redis allows. exceeds also
// replies to a SETRANGE with an empty value, which never extends a string. The result reports
// whether it replied. miniredis reports all other errors of such commands.
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
