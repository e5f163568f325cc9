package proxy

import (
	"fmt"

	"github.com/lockfault/lockfault/internal/resp"
)

// A Protocol is what is spoken on a link. Its text, as fmt prints it, names it in errors. It is safe for concurrent use.
type Protocol interface {
	// Begin returns what reads a connection that begins.
	Begin() Session
}

// A Session finds the messages in what the two ends of one connection write, and refuses one that is too long. One
// goroutine at a time calls Request, and one Reply, which may be another. A request is read before it goes on to the server, so before its answer.
type Session interface {
	// Request reads the first request in b, and returns how many bytes it took, which is 0 while it is incomplete. b begins where
	// the request before ended, and is as long as the last time or longer. It is not kept.
	Request(b []byte) (asks Request, n int, err error)
	// Reply reads the first answer in b, as Request does.
	Reply(b []byte) (says Reply, n int, err error)
}

// A Request is what a [Session] reads of a request.
type Request struct {
	// Words are what it asks, of at least one word unless it asks for nothing: then its bytes don't go on, unless it is Quiet. Where there are Parts they are what
	// those are called by, one for each.
	Words []string
	// Parts are what it says, where those aren't the words.
	Parts []Part
	// Silent says that it gets no answer, or none that anybody waits for.
	Silent bool
	// Opens says that it belongs to the beginning or the end of a connection.
	Opens bool
	// Reads says that it changes nothing that could be a lock.
	Reads bool
	// Within is of one that doesn't, by names of keys, what it may change; nil if that isn't known.
	Within []KeyRange
	// Quiet says that it is the protocol's own affair, as what tells how much an end bears: it passes in its place, and nobody is
	// to hear of it. Such a one needs no words.
	Quiet bool
	// GivesUp are the numbers of requests whose answers nobody waits for any longer.
	GivesUp []int
}

// A Reply is what a [Session] reads of an answer.
type Reply struct {
	// Answers is the number of the request that it answers, by the requests of its connection, from 1; 0 if it answers none, or
	// if that isn't known.
	Answers int
	// Overtakes says that requests before that one may still be answered.
	Overtakes bool
	// Parts are what it says, where that can't be read from its bytes alone.
	Parts []Part
	// Quiet is as of a [Request].
	Quiet bool
	// GivesUp are the numbers of requests that won't be answered.
	GivesUp []int
}

// A Part is one of those that a request or an answer is made of, such as a statement, in a line.
type Part struct {
	Text string
	// Values go with it, such as its parameters.
	Values []string
}

// RESP is the protocol of Redis.
type RESP struct{}

func (RESP) String() string { return "RESP" }

// Begin implements [Protocol]: nothing is kept.
func (RESP) Begin() Session { return RESP{} }

// maxInline is how long, in bytes, a request may be that isn't an array; it is Redis's own
// limit.
const maxInline = 64 << 10

// Request implements [Session].
func (RESP) Request(b []byte) (asks Request, n int, err error) {
	asks.Words, n, err = resp.Command(b)
	limit := MaxMessage
	if len(b) > 0 && b[0] != '*' {
		limit = maxInline
	}
	return asks, n, within(limit, len(b), n, err)
}

// Reply implements [Session].
func (RESP) Reply(b []byte) (says Reply, n int, err error) {
	n, err = resp.Frame(b)
	return says, n, within(MaxMessage, len(b), n, err)
}

// MaxMessage is the longest message, in bytes, that a link with a tap carries.
// Locks need none near it; without a limit a sender of garbage would fill the
// memory.
const MaxMessage = 16 << 20

// within returns err, or that a message of n bytes, 0 if it has not ended after had of them, is too long.
func within(limit, had, n int, err error) error {
	if err == nil && (n > limit || n == 0 && had > limit) {
		return fmt.Errorf("%w: a message of more than %d bytes", resp.ErrProtocol, limit)
	}
	return err
}

// AnyBytes is the word of a request where messages are not told apart, as on a connection that doesn't speak what is spoken there and is carried nevertheless.
const AnyBytes = "BYTES"
