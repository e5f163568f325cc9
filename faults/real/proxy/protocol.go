package proxy

import (
	"fmt"

	"github.com/lockfault/lockfault/internal/resp"
)

// A Protocol parses the bytes of a link's connections. Its text, as fmt prints it, names the
// protocol in errors. It is safe for concurrent use.
type Protocol interface {
	// Begin returns the session for a new connection.
	Begin() Session
}

// A Session finds the messages in the bytes that the two ends of one connection write, and refuses
// messages that are too long. At most one goroutine calls Request at a time, and at most one,
// perhaps another, calls Reply. A request is parsed before it goes on to the server, so before its
// answer is parsed.
type Session interface {
	// Request parses the first request in b, and returns its length in bytes, 0 while it is
	// incomplete. b begins where the previous request ended, and never gets shorter until that
	// request is complete. Request does not retain b.
	Request(b []byte) (asks Request, n int, err error)
	// Reply parses the first answer in b, with the contract of Request.
	Reply(b []byte) (says Reply, n int, err error)
}

// A Request is what a [Session] reads from a request.
type Request struct {
	// Words are the words of the request. A request without words asks for nothing, and its bytes
	// don't go on unless it is Quiet. If there are Parts, Words holds the name of each part.
	Words []string
	// Parts describe the request if Words alone don't.
	Parts []Part
	// Silent reports that the request gets no answer, or none that the client waits for.
	Silent bool
	// Opens reports that the request belongs to the beginning or the end of a connection.
	Opens bool
	// Reads reports that the request changes nothing that could be a lock.
	Reads bool
	// Within holds, for a request that may change keys, the ranges of names that it may change; nil
	// if they are unknown.
	Within []KeyRange
	// Quiet reports that the message belongs to the protocol itself, such as flow control: it
	// passes in its order and no history shows it. A Quiet message needs no words.
	Quiet bool
	// GivesUp are the numbers of requests whose answers the client no longer waits for.
	GivesUp []int
}

// A Reply is what a [Session] reads from an answer.
type Reply struct {
	// Answers is the number of the request that this reply answers, counted on its connection from
	// 1; 0 if it answers none or the number is unknown.
	Answers int
	// Overtakes reports that earlier requests may still be answered.
	Overtakes bool
	// Parts describe the answer if its bytes alone don't.
	Parts []Part
	// Quiet has the meaning of Request.Quiet.
	Quiet bool
	// GivesUp are the numbers of requests that won't be answered.
	GivesUp []int
}

// A Part is one part of a request or an answer, such as a statement, on one line.
type Part struct {
	Text string
	// Values belong to the text, such as the parameters of a statement.
	Values []string
}

// RESP is the protocol of Redis.
type RESP struct{}

func (RESP) String() string { return "RESP" }

// Begin implements [Protocol]. A session has no state.
func (RESP) Begin() Session { return RESP{} }

// maxInline is the maximum length of a request that isn't an array, in bytes. The limit is Redis's
// own.
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

// MaxMessage is the maximum length of a message that a link with a tap carries, in bytes. Locks
// need far less; without a limit a sender of garbage would fill the memory.
const MaxMessage = 16 << 20

// within returns err, or an error if a message is longer than limit. n is the message's length, or
// 0 if it is incomplete; then had is the number of bytes so far.
func within(limit, had, n int, err error) error {
	if err == nil && (n > limit || n == 0 && had > limit) {
		return fmt.Errorf("%w: a message of more than %d bytes", resp.ErrProtocol, limit)
	}
	return err
}

// AnyBytes is the word of a request whose bytes are not parsed, such as on a connection that speaks
// another protocol and is carried nevertheless.
const AnyBytes = "BYTES"
