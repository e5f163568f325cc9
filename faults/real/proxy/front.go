package proxy

import (
	"bytes"
	"fmt"
	"io"
	"time"

	"github.com/lockfault/lockfault/internal/resp"
)

// maxMessage is the longest message, in bytes, that a link with a tap carries.
// Locks need none near it; without a limit a sender of garbage would fill the
// memory.
const maxMessage = 16 << 20

// maxInline is the same for a request that isn't an array; it is Redis's own
// limit.
const maxInline = 64 << 10

// A front stands where one direction of a connection begins: toxiproxy reads
// from it what a process wrote. It finds the messages in that and tells the
// door at the other end what is going to arrive there. Only the goroutine that
// reads may touch it.
type front struct {
	conn    *Conn
	from    *side
	request bool
	door    *door // nil where nobody looks

	buf []byte // what was read of a message that isn't complete
	end int64  // where the last complete one ended
	err error  // why there is nothing more to read
}

// Read implements io.Reader. It blocks while the link is stopped. Every end
// reads as io.EOF: the connection knows more.
func (f *front) Read(p []byte) (int, error) {
	n, err := f.from.socket.Read(p)
	if n > 0 {
		if f.find(p[:n]) && f.conn.flow() {
			return n, nil // an error comes again
		}
	} else if f.err == nil {
		f.err = err
	}
	f.conn.exhausted(f.from, f.err)
	return 0, io.EOF
}

// find finds the messages that are complete by now; false if it isn't RESP.
func (f *front) find(read []byte) bool {
	if f.door == nil {
		return true
	}
	now := time.Now()
	f.buf = append(f.buf, read...)
	rest := f.buf
	for {
		words, n, err := f.parse(rest)
		if err != nil {
			f.refuse(err)
			return false
		}
		if n == 0 {
			f.buf = append(f.buf[:0], rest...)
			return true
		}
		f.end += int64(n)
		if !f.request || len(words) > 0 { // an empty line asks for nothing
			f.door.expect(&Message{
				Conn: f.conn, Request: f.request, Words: words, Bytes: bytes.Clone(rest[:n]), More: len(rest) > n, SetOut: now,
				door: f.door, end: f.end,
			})
		}
		rest = rest[n:]
	}
}

func (f *front) parse(b []byte) (words []string, n int, err error) {
	limit := maxMessage
	if f.request {
		words, n, err = resp.Command(b)
		if len(b) > 0 && b[0] != '*' {
			limit = maxInline
		}
	} else {
		n, err = resp.Frame(b)
	}
	if err == nil && (n > limit || n == 0 && len(b) > limit) {
		err = fmt.Errorf("%w: a message of more than %d bytes", resp.ErrProtocol, limit)
	}
	return words, n, err
}

// refuse ends the connection because what it carries is not RESP.
func (f *front) refuse(why error) {
	sender := "the server"
	if f.request {
		sender = "the client"
	}
	f.err = fmt.Errorf("proxy: link %s, connection %d: %s sent what is not RESP (a link without a tap carries anything): %w",
		f.conn.link.name, f.conn.id, sender, why)
	f.buf = nil
	f.conn.link.warn(f.err)
	f.conn.end(f.err, true)
}
