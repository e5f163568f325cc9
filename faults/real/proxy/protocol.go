package proxy

import (
	"fmt"

	"github.com/lockfault/lockfault/internal/resp"
)

// A Protocol finds the messages in what the two ends of a connection write, and refuses one that is
// too long. It keeps nothing, and is safe for concurrent use. Its text, as fmt prints it, names it in errors.
type Protocol interface {
	// Request reads the first request in b: what it asks, of at least one word unless
	// it asks for nothing, and how many bytes it took, which is 0 while it is incomplete.
	Request(b []byte) (words []string, n int, err error)
	// Reply returns how many bytes the first answer in b takes, 0 while it is incomplete.
	Reply(b []byte) (n int, err error)
}

// RESP is the protocol of Redis.
type RESP struct{}

func (RESP) String() string { return "RESP" }

// maxInline is how long, in bytes, a request may be that isn't an array; it is Redis's own
// limit.
const maxInline = 64 << 10

// Request implements [Protocol].
func (RESP) Request(b []byte) (words []string, n int, err error) {
	words, n, err = resp.Command(b)
	limit := maxMessage
	if len(b) > 0 && b[0] != '*' {
		limit = maxInline
	}
	return words, n, within(limit, len(b), n, err)
}

// Reply implements [Protocol].
func (RESP) Reply(b []byte) (n int, err error) {
	n, err = resp.Frame(b)
	return n, within(maxMessage, len(b), n, err)
}

// maxMessage is the longest message, in bytes, that a link with a tap carries.
// Locks need none near it; without a limit a sender of garbage would fill the
// memory.
const maxMessage = 16 << 20

// within returns err, or that a message of n bytes, 0 if it has not ended after had of them, is too long.
func within(limit, had, n int, err error) error {
	if err == nil && (n > limit || n == 0 && had > limit) {
		return fmt.Errorf("%w: a message of more than %d bytes", resp.ErrProtocol, limit)
	}
	return err
}

// Bytes is for protocols in which messages are not told apart: whatever came in one go is
// one. Its requests' only word is [AnyBytes].
type Bytes struct{}

// AnyBytes stands for a command where messages are not told apart.
const AnyBytes = "BYTES"

func (Bytes) String() string { return "bytes" }

// Request implements [Protocol].
func (Bytes) Request(b []byte) (words []string, n int, err error) {
	return []string{AnyBytes}, len(b), nil
}

// Reply implements [Protocol].
func (Bytes) Reply(b []byte) (n int, err error) { return len(b), nil }
